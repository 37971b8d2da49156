// Tracked workflows: what agents did and why, by phases, with the files that each task has changed.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';
import {waitingFor} from '../answers.js';
import {apiPath} from '../api.js';
import {duration, number, words} from '../format.js';
import {icon} from '../icons.js';
import {
  countOf,
  empty,
  facts,
  filterBox,
  idMark,
  isEmpty,
  json,
  listOf,
  listPage,
  moreButton,
  pageHead,
  pill,
  progressBar,
  prose,
  shown,
  statusIcon,
  tabs,
  time,
} from '../parts.js';
import {use, useList} from '../resources.js';
import {href} from '../router.js';

const STATUSES = [
  ['', 'All'],
  ['IN_PROGRESS', 'In progress'],
  ['COMPLETED', 'Completed'],
  ['FAILED', 'Failed'],
];

export function workflowsView({query}) {
  return listPage(useList(apiPath(['work'], {status: query.get('status'), q: query.get('q')})), query, {
    title: 'Tracked work',
    noun: 'workflow',
    order: 'newest first',
    statuses: STATUSES,
    filter: 'Filter by name or objective',
    row: workRow,
    none: {
      shape: 'tracked',
      title: 'Nothing is tracked yet.',
      text: 'An agent that has these tools reports phases, tasks and decisions:',
      command: 'deepwork serve --tools tracking',
    },
  });
}

export function workRow(workflow) {
  return html`<li class="item" data-row-group>
    <div class="item-icon">${statusIcon(workflow.blockers ? 'waits' : workflow.status)}</div>
    <div class="item-main">
      <a class="item-title stretched" data-row href=${href(['work', workflow.id])}>${workflow.name}</a>
      <p class="item-detail"><span class="cut">${workflow.objective}</span></p>
    </div>
    <div class="item-side">
      ${workflow.blockers ? html`<span class="tone-warn">${countOf(workflow.blockers, 'blocker')}</span>` : nothing}
      <span class="quiet">phase ${workflow.phase} of ${workflow.phases}</span
      ><span class="quiet">${countOf(workflow.tasks.total, 'task')}</span
      >${time(workflow.completed_at ?? workflow.created_at)}
    </div>
  </li>`;
}

export function workflowView({parts, query}) {
  const id = parts[1];
  const tab = query.get('tab') ?? '';
  return html`<a class="up" href="#/work">${icon('chevron')}Tracked work</a> ${shown(
      use(apiPath(['work', id])),
      (workflow) =>
        html`${head(workflow)}
        ${tabs(
          [
            ['', 'Phases', workflow.phase_list.length],
            ['decisions', 'Decisions', workflow.counts.decisions],
            ['issues', 'Issues', workflow.counts.issues],
            ['milestones', 'Milestones', workflow.counts.milestones],
          ],
          tab,
          (value) => href(['work', id], {tab: value}),
        )}
        ${(LISTS[tab] ?? phases)(workflow, query)}`,
    )}`;
}

const LISTS = {
  decisions: (workflow, query) => logged(workflow, query, 'decisions', decision),
  issues: (workflow, query) => logged(workflow, query, 'issues', issue),
  milestones: (workflow, query) => logged(workflow, query, 'milestones', milestone),
};

function head(workflow) {
  const about = html`${pill(workflow.status)}${idMark(workflow.id)}<span class="quiet">${words(workflow.profile)}</span
    ><span class="quiet">phase ${workflow.phase} of ${workflow.phases}</span>
    <span class="quiet">began ${time(workflow.created_at, {focusable: true})}</span
    >${workflow.completed_at ? html`<span class="quiet">ended ${time(workflow.completed_at, {focusable: true})}</span>` : nothing}`;
  return html`${pageHead(workflow.name, about, 'meta')} ${workflow.blockers ? waitingFor(workflow.thing) : nothing}
    <p class="prose objective">${workflow.objective}</p>
    ${
      workflow.summary
        ? html`<div class="card">
            <h2>Summary</h2>
            ${prose(workflow.summary)}${list('Achievements', workflow.achievements)}${list('Limitations', workflow.limitations)}
          </div>`
        : nothing
    }
    ${
      workflow.scope || workflow.constraints
        ? html`<details class="fold">
            <summary>Scope and constraints</summary>
            ${prose(workflow.scope)}${prose(workflow.constraints)}
          </details>`
        : nothing
    }`;
}

function list(title, items) {
  return items?.length
    ? html`<h3>${title}</h3>
        <ul class="bullets">
          ${items.map((item) => html`<li class="prose">${item}</li>`)}
        </ul>`
    : nothing;
}

function phases(workflow, query) {
  const tasks = useList(apiPath(['work', workflow.id, 'tasks'], {q: query.get('q')}), {pageSize: 500});
  return html`<div class="filters">${filterBox(query, {label: 'Find tasks by name, goal or agent'})}</div>
    ${workflow.phase_list.length ? nothing : empty({shape: 'tracked', title: 'No phase has begun yet.'})}
    ${shown(tasks, (items) => {
      const byPhase = Map.groupBy(items, ({phase_id: phaseId}) => phaseId);
      return html`<ol class="phases">
          ${repeat(
            workflow.phase_list,
            ({id}) => id,
            (phase) => phaseItem(workflow, phase, byPhase.get(phase.id) ?? [], query),
          )}
        </ol>
        ${moreButton(tasks)}`;
    })}`;
}

function phaseItem(workflow, phase, tasks, query) {
  const {total, completed, failed, in_progress: running} = phase.tasks;
  return html`<li class="phase">
    <header>
      ${statusIcon(phase.status)}
      <h2>${phase.number}. ${phase.name}</h2>
      <span class="quiet"
        >${countOf(total, 'task')}${running ? `, ${number(running)} in progress` : ''}${failed ? `, ${number(failed)} failed` : ''}</span
      >
      <span class="push quiet">${phase.seconds ? duration(phase.seconds * 1000) : ''}</span>
    </header>
    ${total ? progressBar({completed, failed, in_progress: running}, total) : nothing}
    ${prose(phase.description)}${phase.summary ? prose(phase.summary) : nothing} ${taskTree(workflow, tasks, query)}
  </li>`;
}

// Tasks below the task that has started them.
function taskTree(workflow, tasks, query) {
  const ids = new Set(tasks.map(({id}) => id));
  const below = Map.groupBy(tasks, ({parent_task_id: parent}) => (ids.has(parent) ? parent : null));
  const draw = (parent) =>
    below.has(parent)
      ? html`<ul class="work-tasks">
          ${repeat(
            below.get(parent),
            ({id}) => id,
            (task) => html`<li>${workTask(workflow, task, query)}${draw(task.id)}</li>`,
          )}
        </ul>`
      : nothing;
  return draw(null);
}

function workTask(workflow, task, query) {
  const counts = Object.entries(Object.groupBy(task.files, ([letter]) => letter));
  return html`<details class="work-task" ?open=${query.get('task') === task.id}>
    <summary data-row>
      ${statusIcon(task.status)}<span class="work-name">${task.name}</span>
      ${task.agent ? html`<span class="mini cut">${task.agent}</span>` : nothing}
      ${task.manual_review_needed ? html`<span class="mini tone-warn">review by a person</span>` : nothing}
      <span class="push file-counts"
        >${counts.map(([letter, files]) => html`<span class="letter letter-${letter}" title=${LETTERS[letter]}>${letter}${files.length}</span>`)}</span
      >
      <span class="quiet"
        >${task.seconds === null || task.seconds === undefined ? time(task.started_at) : duration(task.seconds * 1000)}</span
      >
    </summary>
    <div class="work-detail">
      <p class="quiet">Goal</p>
      ${prose(task.goal)}
      ${
        task.summary
          ? html`<p class="quiet">Outcome</p>
              ${prose(task.summary)}`
          : nothing
      }
      ${list('Achievements', task.achievements)}${list('Limitations', task.limitations)}${list('Next steps', task.next_steps)}
      ${(task.warnings ?? []).map((warning) => html`<p class="notice tone-warn">${icon('alert')}<span>${warning}</span></p>`)}
      ${task.files_total ? files(workflow, task) : nothing}
      ${facts([
        ['Began', time(task.started_at, {focusable: true})],
        ['Ended', task.completed_at && time(task.completed_at, {focusable: true})],
        ['Tests', task.tests_status && words(task.tests_status)],
        ['Packages added', task.packages_added?.join(', ')],
        ['Areas', task.areas?.join(', '), 'path'],
      ])}
    </div>
  </details>`;
}

const LETTERS = {A: 'added', M: 'modified', D: 'deleted'};

function files(workflow, task) {
  return html`<h3>Files <span class="count">${number(task.files_total)}</span></h3>
    <ul class="files">
      ${task.files.map(([letter, path]) => html`<li><span class="letter letter-${letter}" title=${LETTERS[letter]}>${letter}</span><span class="path">${path}</span></li>`)}
    </ul>
    ${task.files_total > task.files.length ? html`<p class="quiet">The first ${number(task.files.length)}.</p>` : nothing}`;
}

function logged(workflow, query, name, draw) {
  const entries = useList(apiPath(['work', workflow.id, name], {q: query.get('q')}));
  return html`<div class="filters">${filterBox(query, {label: `Find ${name}`})}</div>
    ${listOf(entries, {
      kind: 'log',
      row: (item) =>
        html`<li class="card log-item">
          ${draw(item)}
          <p class="quiet log-foot">
            <span class="cut">${item.task ?? ''}</span
            >${item.agent ? html`<span class="cut">${item.agent}</span>` : nothing}${time(item.at, {focusable: true})}
          </p>
        </li>`,
      none: {shape: 'tracked', title: query.get('q') ? 'Nothing fits this filter.' : `No ${name} yet.`},
    })}`;
}

function decision(item) {
  return html`<p class="log-meta">${icon('decision')}${words(item.category)}</p>
    <h2>${item.question}</h2>
    <p class="prose"><b>${item.chosen}</b></p>
    ${prose(item.reasoning)}
    ${item.options?.length ? html`<p class="quiet">Considered: ${item.options.map((option) => (typeof option === 'string' ? option : JSON.stringify(option))).join(' · ')}</p>` : nothing}
    ${item.trade_offs ? html`<p class="quiet prose">Trade-offs: ${item.trade_offs}</p>` : nothing}`;
}

function issue(item) {
  const state = item.blocks
    ? pill('waits', 'Waits for a person')
    : item.resolved_at
      ? pill('completed', 'Resolved')
      : nothing;
  return html`<p class="log-meta">${icon('alert')}${words(item.type)}${state}</p>
    <p class="prose"><b>${item.description}</b></p>
    ${prose(item.resolution)}
    ${item.resolved_at ? html`<p class="quiet">Resolved by ${item.resolved_by ?? 'a person'}, ${time(item.resolved_at, {focusable: true})}${item.resolved_note ? html`: <span class="prose">${item.resolved_note}</span>` : nothing}</p>` : nothing}`;
}

function milestone(item) {
  return html`<p class="log-meta">${icon('flag')}Milestone</p>
    <p class="prose"><b>${item.message}</b></p>
    ${typeof item.progress === 'number' ? html`<p class="quiet">${item.progress} %</p>` : isEmpty(item.progress) ? nothing : json(item.progress)}
    ${
      isEmpty(item.metadata)
        ? nothing
        : html`<details class="fold">
            <summary>Details</summary>
            ${json(item.metadata)}
          </details>`
    }`;
}
