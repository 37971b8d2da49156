// What runs, what is stuck, who works, and what reviews have cost.

import {html, nothing, svg} from '../../vendor/lit-html/lit-html.js';
import {inboxItem} from '../answers.js';
import {duration, money, now, number, short} from '../format.js';
import {icon} from '../icons.js';
import {countOf, empty, facts, pageHead, shown, titled} from '../parts.js';
import {use, useList} from '../resources.js';
import {href} from '../router.js';
import {agentCard} from './agents.js';
import {planRow} from './plans.js';
import {hasNoAgent, sessionRow} from './sessions.js';
import {workRow} from './work.js';

const WAITING_SHOWN = 3;
const AGENTS_SHOWN = 6;

export function overviewView({viewer}) {
  return html`${pageHead('Overview', 'What runs, what is stuck, and what it costs.')}
  ${viewer.database?.problem ? html`<p class="notice tone-warn">${icon('alert')}<span>${viewer.database.problem}</span></p>` : nothing}
  ${shown(use('api/overview'), (overview) => html`${tiles(overview)}${isIdle(overview) ? first() : board(overview)}`)}`;
}

function isIdle({sessions, plans = [], work = [], counts}) {
  return (
    !sessions.length &&
    !plans.length &&
    !work.length &&
    !sum(counts.sessions) &&
    !sum(counts.plans ?? {}) &&
    !sum(counts.work ?? {})
  );
}

function sum(counts) {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function first() {
  return empty({
    shape: 'run',
    title: 'No agent has started anything yet.',
    text: 'Connect your agent, and ask it to run a workflow. What it does shows up here while it does it.',
    command: 'deepwork connect',
  });
}

function tiles({counts, spent}) {
  const {sessions, agents, tasks} = counts;
  return html`<ul class="tiles">
    ${tile('Waits for you', counts.inbox, counts.inbox ? 'answer in the inbox' : 'nothing', '#/inbox', counts.inbox ? 'warn' : '')}
    ${tile('Active sessions', sessions.active, sessions.damaged ? `${number(sessions.damaged)} damaged` : `${number(sessions.completed)} completed`, href(['sessions'], {status: 'active'}), sessions.damaged ? 'bad' : '')}
    ${tasks ? tile('Tasks in progress', tasks.in_progress ?? 0, `${short(tasks.pending ?? 0)} free, ${short(tasks.blocked ?? 0)} blocked${tasks.failed ? `, ${short(tasks.failed)} failed` : ''}`, '#/plans', tasks.failed ? 'bad' : '') : nothing}
    ${agents ? tile('Agents at work', agents.busy ?? 0, `${number(agents.online ?? 0)} more online`, '#/agents') : nothing}
    ${spent ? tile('Spent on reviews', money(spent.cost_usd), `${short(spent.input_tokens + spent.output_tokens)} tokens in ${countOf(spent.verdicts, 'verdict')}`, '#/sessions') : nothing}
  </ul>`;
}

function tile(text, value, detail, address, colour = '') {
  return html`<li>
    <a class="tile ${colour ? `tone-${colour}` : ''}" href=${address}
      ><span class="tile-name">${text}</span>
      <span class="tile-value">${typeof value === 'number' ? short(value) : value}</span
      ><span class="tile-detail">${detail}</span></a
    >
  </li>`;
}

function board({sessions, plans, work, agents, spent}) {
  const waiting = useList('api/inbox');
  const running = sessions.filter((session) => !hasNoAgent(session));
  return html`<div class="board">
    <div class="board-main">
      ${section(
        'Waits for you',
        waiting.items.length
          ? html`<div class="inbox">
                ${waiting.items.slice(0, WAITING_SHOWN).map((item) => inboxItem(item, {level: 3}))}
              </div>
              ${waiting.items.length > WAITING_SHOWN ? html`<p class="more"><a href="#/inbox">All ${number((waiting.total ?? waiting.items.length) + waiting.unlisted)} in the inbox</a></p>` : nothing}`
          : nothing,
      )}
      ${section(
        'Running now',
        running.length
          ? rowsOf(running, sessionRow)
          : html`<p class="quiet">
              ${sessions.length ? 'No agent is at work.' : 'No session is active.'}
              <a href="#/sessions">All sessions</a>
            </p>`,
      )}
      ${section('Without an agent', rowsOf(sessions.filter(hasNoAgent), sessionRow))}
      ${section('Plans', rowsOf(plans, planRow))} ${section('Tracked work', rowsOf(work, workRow))}
    </div>
    <div class="board-side">
      ${section(
        'Agents',
        agents
          ? html`${
              agents.length
                ? html`<ul class="cards">
                    ${atWorkFirst(agents)
                      .slice(0, AGENTS_SHOWN)
                      .map((agent) => agentCard(agent))}
                  </ul>`
                : html`<p class="quiet">No agent is online.</p>`
            }${agents.length > AGENTS_SHOWN ? html`<p class="more"><a href="#/agents">All agents</a></p>` : nothing}`
          : nothing,
      )}
      ${spent ? spending(spent) : nothing}
    </div>
  </div>`;
}

function atWorkFirst(agents) {
  return [...agents].sort((left, right) => right.tasks.length - left.tasks.length);
}

function section(title, content) {
  return content === nothing ? nothing : html`<section aria-label=${title}>${titled(title, content, 2)}</section>`;
}

function rowsOf(things, row) {
  return things?.length
    ? html`<ul class="rows">
        ${things.map(row)}
      </ul>`
    : nothing;
}

function spending(spent) {
  return section(
    'Spent on reviews',
    html`<div class="card">
      <p class="spent-sum">
        <strong>${money(spent.cost_usd)}</strong>
        <span class="quiet">for ${countOf(spent.verdicts, 'verdict')} in ${countOf(spent.sessions, 'session')}</span>
      </p>
      ${days(spent.by_day)}
      ${facts([
        ['Input tokens', short(spent.input_tokens)],
        ['Output tokens', short(spent.output_tokens)],
        ['Failed verdicts', number(spent.failed_verdicts)],
        ['Reused', number(spent.reused)],
        ['Time in reviews', duration(spent.seconds * 1000)],
        ...spent.by_model.map((model) => [model.name, money(model.cost_usd)]),
      ])}
      ${spent.complete ? nothing : html`<p class="quiet">Older sessions are still being added up.</p>`}
    </div>`,
  );
}

const DAY_MS = 86_400_000;
const DAYS = 14;

function days(byDay) {
  const costs = new Map(byDay.map(({day, ...spent}) => [day, spent]));
  const last = Array.from({length: DAYS}, (_, index) =>
    new Date(now() - (DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10),
  );
  const amount = (day) => costs.get(day)?.cost_usd || (costs.get(day)?.verdicts ?? 0) / 1000;
  const most = Math.max(...last.map(amount));
  if (!most) return nothing;
  return html`<svg
      class="days"
      viewBox="0 0 ${DAYS * 10} 40"
      preserveAspectRatio="none"
      role="img"
      aria-label="Spent in each of the last ${DAYS} days; today ${money(costs.get(last.at(-1))?.cost_usd ?? 0)}"
    >
      ${last.map((day, index) => {
        const height = Math.max(amount(day) ? 2 : 0.6, (amount(day) / most) * 40);
        return svg`<rect class=${amount(day) ? 'day' : 'day is-empty'} x=${index * 10 + 1} y=${40 - height} width="8" height=${height}><title>${day}: ${money(costs.get(day)?.cost_usd ?? 0)}, ${countOf(costs.get(day)?.verdicts ?? 0, 'verdict')}</title></rect>`;
      })}
    </svg>
    <p class="quiet days-words"><span>${DAYS} days ago</span><span>today</span></p>`;
}
