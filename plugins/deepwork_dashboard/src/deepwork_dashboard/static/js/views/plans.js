// Plans of many agents: the list, and one plan as a drawing or a table, with the details of a task beside it.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {waitingFor} from '../answers.js';
import {apiPath} from '../api.js';
import '../elements/plan_graph.js';
import '../elements/virtual_rows.js';
import {duration, exact, now, number, toMilliseconds, words} from '../format.js';
import {icon} from '../icons.js';
import {interventions} from '../interventions.js';
import {
  countOf,
  empty,
  facts,
  filterBox,
  idMark,
  isEmpty,
  json,
  listPage,
  pageHead,
  pill,
  progressBar,
  prose,
  shown,
  statusIcon,
  tabs,
  TASK_ORDER,
  thingLink,
  time,
  titled,
} from '../parts.js';
import {use, useList} from '../resources.js';
import {current, href, setQuery, withQuery} from '../router.js';
import {messageList} from './agents.js';

const STATUSES = [
  ['', 'All'],
  ['in_progress', 'In progress'],
  ['ready', 'Ready'],
  ['paused', 'Paused'],
  ['completed', 'Completed'],
  ['failed', 'Failed'],
];

export function plansView({query}) {
  return listPage(useList(apiPath(['plans'], {status: query.get('status'), q: query.get('q')})), query, {
    title: 'Plans',
    noun: 'plan',
    order: 'newest first',
    statuses: STATUSES,
    filter: 'Filter by name or id',
    row: planRow,
    none: {
      shape: 'plan',
      title: 'No plan yet.',
      text: 'A coordinating agent makes one with the tools of this set, and other agents do its tasks:',
      command: 'deepwork serve --tools orchestration:coordinator',
    },
  });
}

export function planRow(plan) {
  return html`<li class="item" data-row-group>
    <div class="item-icon">${statusIcon(shownStatus(plan))}</div>
    <div class="item-main">
      <a class="item-title stretched" data-row href=${href(['plans', plan.id])}>${plan.name}</a>
      <p class="item-detail">
        <span>${number(plan.done)} of ${countOf(plan.total, 'task')} done</span>
        ${plan.tasks.in_progress ? html`<span>${number(plan.tasks.in_progress)} in progress</span>` : nothing}
        ${plan.tasks.failed ? html`<span class="tone-bad">${number(plan.tasks.failed)} failed</span>` : nothing}
      </p>
    </div>
    <div class="item-side">
      <span class="item-progress"
        >${progressBar(plan.tasks, plan.total)}<span class="quiet"
          >${plan.total ? Math.floor((plan.done / plan.total) * 100) : 0} %</span
        ></span
      >${time(plan.updated_at)}
    </div>
  </li>`;
}

// A person may pause a plan in any state.
function shownStatus({status, paused}) {
  return paused === null ? status : 'paused';
}

// A task has its address in its plan; a link that knows the task alone is led there.
export function taskView({parts}) {
  return html`<h1 class="visually-hidden" tabindex="-1">Task</h1>
    ${shown(use(apiPath(['tasks', parts[1]])), (task) => {
      queueMicrotask(() => {
        if (current().parts[1] === parts[1]) {
          history.replaceState(null, '', href(['plans', task.plan.id], {task: task.id}));
          dispatchEvent(new HashChangeEvent('hashchange'));
        }
      });
      return nothing;
    })}`;
}

const TABS = [
  ['', 'Graph'],
  ['table', 'Table'],
  ['messages', 'Messages'],
  ['about', 'About'],
];

export function planView({parts, query}) {
  const id = parts[1];
  const tab = query.get('tab') ?? '';
  // The tasks are read beside the plan, and not after it.
  const graph = ['', 'table'].includes(tab) ? use(apiPath(['plans', id, 'graph'])) : null;
  const kept = Object.fromEntries(['status', 'q', 'task'].map((name) => [name, query.get(name)]));
  return html`<a class="up" href="#/plans">${icon('chevron')}Plans</a> ${shown(
      use(apiPath(['plans', id])),
      (plan) =>
        html`${planHead(plan, query)} ${intervene(plan)}
          <div class="bar-of-tabs">
            ${tabs(TABS, tab, (value) => href(['plans', id], {tab: value, ...kept}))}${graph ? planFilters(query) : nothing}
          </div>
          ${graph ? tasksArea(graph, tab, query) : tab === 'about' ? about(plan) : messageList(apiPath(['messages'], {plan: id}), query)}`,
    )}`;
}

function intervene({id, status, paused}) {
  if (['completed', 'abandoned'].includes(status)) return nothing;
  return interventions({path: apiPath(['plans', id]), noun: 'plan', paused});
}

function tasksArea(graph, tab, query) {
  const chosen = query.get('task');
  return html`<div class=${chosen ? 'plan-area has-task' : 'plan-area'}>
    <div class="plan-main">
      ${shown(graph, (tasks) => (tab === 'table' ? table(tasks, query) : drawing(tasks, query)))}
    </div>
    ${chosen ? taskPanel(chosen) : nothing}
  </div>`;
}

function planHead(plan, query) {
  const chosen = query.get('status') ?? '';
  const about = html`${pill(shownStatus(plan))}${idMark(plan.id)}<span class="quiet"
      >changed ${time(plan.updated_at, {focusable: true})}</span
    >
    <span class="quiet"
      >${countOf(plan.running, 'task')} running, ${countOf(Math.max(0, plan.free_slots), 'slot')} free</span
    >`;
  return html`${pageHead(plan.name, about, 'meta')}
    <div class="plan-progress">
      ${progressBar(plan.tasks, plan.total)}
      <div class="legend" role="group" aria-label="Only tasks that are">
        ${TASK_ORDER.filter((status) => plan.tasks[status]).map(
          (status) =>
            html` <button
              type="button"
              aria-pressed=${String(chosen === status)}
              @click=${() => setQuery({status: chosen === status ? '' : status})}
            >
              <span class="swatch bar-${status}"></span>${words(status)} <b>${number(plan.tasks[status])}</b>
            </button>`,
        )}
      </div>
    </div>
    ${hints(plan)}`;
}

// Why it does not go on, or what could be begun: the first of what a person can do something about.
function hints(plan) {
  const forPeople = new Set(plan.human_tasks.map(({id}) => id));
  const groups = [
    ['Failed', 'bad', 'cross', plan.failed_tasks],
    ['Wait for a person', 'warn', 'hand', plan.human_tasks],
    ['Can be started now', 'run', 'run', plan.next_tasks.filter(({id}) => !forPeople.has(id))],
  ].filter(([, , , tasks]) => tasks.length);
  return groups.length
    ? html`<ul class="hints">
        ${groups.map(
          ([text, colour, shape, tasks]) =>
            html`<li>
              <span class="tone-${colour}">${icon(shape)}${text}</span>
              ${tasks.slice(0, 3).map((task) => html`<a class="chip" href=${withQuery({task: task.id})}>${task.name}</a>`)}
              ${tasks.length > 3 ? html`<span class="quiet">and ${number(tasks.length - 3)} more</span>` : nothing}
            </li>`,
        )}
      </ul>`
    : nothing;
}

function planFilters(query) {
  return html`<div class="filters">
    ${query.get('status') ? html`<button type="button" class="chip" @click=${() => setQuery({status: ''})}>only ${words(query.get('status')).toLowerCase()}${icon('cross', 'remove this filter')}</button>` : nothing}
    ${filterBox(query, {label: 'Find tasks by name, id or agent'})}
  </div>`;
}

// The rows of the graph as objects, made once for each answer.
const objects = new WeakMap();

function tasksOf(graph) {
  if (!objects.has(graph)) {
    const rows = graph.rows.map(([id, name, status, sequence, group, agent]) => ({
      id,
      name,
      status,
      sequence,
      group,
      agent: agent && (graph.agents[agent] ?? agent),
    }));
    objects.set(graph, {rows, edges: graph.edges});
  }
  return objects.get(graph);
}

// One set of ids for one filter of one answer, so that the drawing sees at once whether something has changed.
let lastMatches = {key: '', rows: null, ids: null};

function matching(rows, query) {
  const text = (query.get('q') ?? '').toLowerCase();
  const status = query.get('status') ?? '';
  const key = `${status} ${text}`;
  if (key === ' ') return null;
  if (lastMatches.key !== key || lastMatches.rows !== rows) {
    const fits = (task) =>
      (!status || task.status === status) &&
      text.split(/\s+/).every((word) => `${task.name} ${task.id} ${task.agent ?? ''}`.toLowerCase().includes(word));
    lastMatches = {key, rows, ids: new Set(rows.filter(fits).map(({id}) => id))};
  }
  return lastMatches.ids;
}

function drawing(answer, query) {
  const graph = tasksOf(answer);
  if (!graph.rows.length)
    return empty({shape: 'plan', title: 'This plan has no tasks yet.', text: 'Its coordinator has not set the plan.'});
  const ids = matching(graph.rows, query);
  return html`${ids ? html`<p class="quiet" role="status">${countOf(ids.size, 'task fits', 'tasks fit')} the filter.</p>` : nothing}
    <plan-graph
      label="Tasks and what they need. Arrow keys go from task to task, Enter opens one. The tab Table has the same as a list."
      .graph=${graph}
      .letThrough=${ids}
      .selected=${query.get('task')}
      @choose=${(event) => setQuery({task: event.detail ?? ''})}
    ></plan-graph>`;
}

const HEADS = ['Task', 'Status', 'Agent', 'Group', 'No.'];

function table(answer, query) {
  const {rows} = tasksOf(answer);
  const ids = matching(rows, query);
  const found = ids ? rows.filter(({id}) => ids.has(id)) : rows;
  if (!found.length) return empty({shape: 'search', title: 'No task fits this filter.'});
  return html`<div
    class="vtable columns-tasks"
    role="table"
    aria-label="Tasks of the plan"
    aria-rowcount=${found.length + 1}
  >
    <div class="vhead" role="row" aria-rowindex="1">
      ${HEADS.map((head) => html`<span role="columnheader">${head}</span>`)}
    </div>
    <virtual-rows
      role="rowgroup"
      .rowHeight=${44}
      .rows=${found}
      .row=${(task) => taskCells(task, query)}
    ></virtual-rows>
  </div>`;
}

function taskCells(task, query) {
  return html`<span role="cell" class="cut"
      ><a
        class="stretched"
        href=${withQuery({task: task.id})}
        aria-current=${query.get('task') === task.id ? 'true' : nothing}
        >${task.name}</a
      ></span
    >
    <span role="cell">${pill(task.status)}</span
    ><span role="cell" class="cut">${task.agent ?? html`<span class="quiet">–</span>`}</span>
    <span role="cell" class="cut quiet">${task.group ?? '–'}</span
    ><span role="cell" class="quiet">${task.sequence}</span>`;
}

function taskPanel(id) {
  return html`<aside class="panel card" aria-label="Task">
    <button type="button" class="icon-button close" aria-label="Close the task" @click=${() => setQuery({task: ''})}>
      ${icon('cross')}
    </button>
    ${shown(use(apiPath(['tasks', id])), taskDetail)}
  </aside>`;
}

function taskDetail(task) {
  return html`<h2>${task.name}</h2>
    <p class="meta">
      ${pill(task.status)}${idMark(task.id)}${task.for_person ? html`<span class="mini tone-warn">for a person</span>` : nothing}
    </p>
    ${
      task.error
        ? html`<div class="notice tone-bad">
            ${icon('cross')}
            <div>
              <p>
                <b>Failed</b
                >${task.ended_by ? html`, reported by ${thingLink(task.ended_by.thing, task.ended_by.name)}` : nothing},
                ${time(task.updated_at, {focusable: true})}
              </p>
              ${prose(task.error)}
            </div>
          </div>`
        : nothing
    }
    ${
      task.status === 'blocked' && task.waits_for.length
        ? html`<section class="why">
            <h3>Why it is blocked</h3>
            ${waitsTree(task.waits_for)}
          </section>`
        : nothing
    }
    ${waitingFor(task.thing)} ${claim(task)} ${prose(task.description)}
    ${
      task.outcome
        ? html`<h3>Outcome</h3>
            ${task.ended_by ? html`<p class="quiet">by ${thingLink(task.ended_by.thing, task.ended_by.name)}</p>` : nothing}
            ${prose(task.outcome)}${isEmpty(task.outcome_detail) ? nothing : fold('Details of the outcome', task.outcome_detail)}`
        : nothing
    }
    ${
      task.checkpoints.length
        ? html`<h3>Checkpoints <span class="count">${number(task.checkpoints_total)}</span></h3>
            <ol class="checkpoints">
              ${task.checkpoints.map(checkpoint)}
            </ol>
            ${task.checkpoints_total > task.checkpoints.length ? html`<p class="quiet">The newest ${number(task.checkpoints.length)}.</p>` : nothing}`
        : nothing
    }
    ${titled('Needs', taskLinks(task.needs))} ${titled('Needed by', taskLinks(task.needed_by))}
    ${titled('How it is to be done', prose(task.plan_summary))}
    ${facts([
      ['Group', task.group, 'cut'],
      ['Number', task.sequence],
      ['Capabilities', task.required_capabilities?.join(', ')],
      ['Workspace', task.workspace && html`${task.workspace.branch}<br />${task.workspace.path}`, 'path'],
      ['Changed', time(task.updated_at, {focusable: true})],
    ])}
    ${isEmpty(task.plan_detail) ? nothing : fold('Plan of the task', task.plan_detail)}
    ${isEmpty(task.context) ? nothing : fold('Context', task.context)}
    <p><a href=${href(['events'], {about: `plan:${task.plan.id}`, q: task.id})}>Events of this task</a></p>`;
}

function fold(title, value) {
  return html`<details class="fold">
    <summary>${title}</summary>
    ${json(value)}
  </details>`;
}

function claim(task) {
  if (!task.claim) return nothing;
  const left = task.claim.lease_until ? toMilliseconds(task.claim.lease_until) - now() : null;
  return html`<div class="claim">
    <p>
      ${icon('agents')}${thingLink(task.claim.agent.thing, task.claim.agent.name)}
      <span class="quiet">has it since ${time(task.claim.claimed_at, {focusable: true})}</span>
      ${task.claim.session ? html`<span class="quiet">for ${thingLink(task.claim.session, 'its session')}</span>` : nothing}
    </p>
    ${
      left === null
        ? nothing
        : left > 0
          ? html`<p class="quiet" title=${exact(task.claim.lease_until)}>
              The lease ends in ${duration(left)} unless the agent calls.
            </p>`
          : html`<p class="tone-warn" title=${exact(task.claim.lease_until)}>
              The lease ran out ${duration(-left)} ago: the next call of any agent frees the task.
            </p>`
    }
  </div>`;
}

// What a task waits for, and what that waits for.
function waitsTree(nodes) {
  return html`<ul class="tree">
    ${nodes.map(
      (node) =>
        html`<li>
          ${statusIcon(node.status)}<a href=${withQuery({task: node.id})}>${node.name}</a>
          <span class="quiet"
            >${words(node.status).toLowerCase()}${node.agent ? '' : node.status === 'pending' ? ', nobody has claimed it' : ''}</span
          >${node.waits_for?.length ? waitsTree(node.waits_for) : nothing}
        </li>`,
    )}
  </ul>`;
}

function taskLinks(tasks) {
  if (!tasks.length) return nothing;
  return html`<ul class="links">
    ${tasks.map(
      (task) =>
        html`<li>
          ${statusIcon(task.status)}<a href=${withQuery({task: task.id})}>${task.name}</a
          >${task.outcome ? html`<p class="quiet prose clamp-2">${task.outcome}</p>` : nothing}
        </li>`,
    )}
  </ul>`;
}

function checkpoint(point) {
  return html`<li>
    <p class="review-meta"><b>${words(point.type)}</b><span class="push">${time(point.at, {focusable: true})}</span></p>
    ${prose(point.summary)}
    ${point.files_changed?.length ? html`<p>${point.files_changed.map((file) => html`<code class="path">${typeof file === 'string' ? file : JSON.stringify(file)}</code> `)}</p>` : nothing}
    ${isEmpty(point.detail) ? nothing : fold('Details', point.detail)}
  </li>`;
}

function about(plan) {
  return html`<div class="card">
    ${facts(
      [
        ['Id', idMark(plan.id)],
        ['Created', exact(plan.created_at)],
        ['At once, at most', countOf(plan.max_parallel_tasks, 'task')],
        [
          'Made from',
          html`${plan.source_type}${plan.source_ref ? html` <code class="path">${plan.source_ref}</code>` : nothing}`,
        ],
      ],
      'facts wide',
    )}
    ${titled('Summary', prose(plan.plan_summary), 2)}
    ${titled(
      'Workspaces',
      plan.workspaces?.length
        ? html`<ul class="plain">
            ${plan.workspaces.map((workspace) => html`<li>${pill(workspace.status)} <code class="path">${workspace.branch}</code> <span class="quiet path">${workspace.path}</span></li>`)}
          </ul>`
        : nothing,
      2,
    )}
    ${titled('What it was made from', prose(plan.source_content), 2)}
  </div>`;
}
