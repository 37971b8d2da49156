// Agents, what they hold, and the messages between them.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {waitingFor} from '../answers.js';
import {apiPath} from '../api.js';
import {duration, exact, now, number, quietFor, toMilliseconds, words} from '../format.js';
import {icon} from '../icons.js';
import {
  choices,
  countOf,
  facts,
  filterBox,
  idMark,
  json,
  listOf,
  pageHead,
  pill,
  prose,
  shown,
  statusIcon,
  tabs,
  thingLink,
  time,
} from '../parts.js';
import {use, useList} from '../resources.js';
import {href, withQuery} from '../router.js';

const STATUSES = [
  ['', 'All'],
  ['busy', 'Busy'],
  ['online', 'Online'],
  ['offline', 'Offline'],
];
const TABS = [
  ['agents', 'Agents'],
  ['messages', 'Messages'],
];

export function agentsView({query}) {
  const list = useList(apiPath(['agents'], {status: query.get('status'), role: query.get('role'), q: query.get('q')}));
  return html`${pageHead('Agents', list.total === null ? nothing : countOf(list.total, 'agent'))}
    ${tabs(TABS, 'agents', (name) => href([name]))}
    <div class="filters">
      ${choices('status', STATUSES, query, {label: 'Status'})}${filterBox(query, {label: 'Filter by name or id'})}
    </div>
    ${listOf(list, {
      kind: 'cards wide',
      row: (agent) => agentCard(agent, {level: 2}),
      none:
        query.get('q') || query.get('status')
          ? {shape: 'search', title: 'No agent fits this filter.'}
          : {
              shape: 'agents',
              title: 'No agent has registered.',
              text: 'Agents that work on plans register themselves once they have these tools:',
              command: 'deepwork serve --tools orchestration:worker',
            },
    })}`;
}

// An agent that is not offline, and has made no call for minutes: it may have gone without a word. People make none.
function isQuiet(agent) {
  return agent.status !== 'offline' && !agent.human && quietFor(agent.last_heartbeat) !== '';
}

// What is most worth knowing of an agent: whether it lives, what it holds, and how long its lease still lasts.
export function agentCard(agent, {level = 3} = {}) {
  const name = html`<a class="stretched" data-row href=${href(['agents', agent.id])}>${agent.name}</a>`;
  return html`<li class="card agent" data-row-group>
    <div class="agent-head">
      ${statusIcon(agent.status)}${level === 2 ? html`<h2 class="cut">${name}</h2>` : html`<h3 class="cut">${name}</h3>`}<span
        class="quiet push"
        >${isQuiet(agent) ? `no call since ${quietFor(agent.last_heartbeat)}` : words(agent.status)}</span
      >
    </div>
    <p class="item-detail">
      <span>${kindOf(agent)}</span
      ><span>${agent.role}</span
      >${agent.unread ? html`<span>${countOf(agent.unread, 'unread message')}</span>` : nothing}
    </p>
    ${agent.tasks.slice(0, 3).map((task) => html`<p class="holds">${statusIcon(task.status)}<a href=${href(['plans', task.plan], {task: task.id})}>${task.name}</a></p>`)}
    ${agent.tasks.length > 3 ? html`<p class="quiet">and ${number(agent.tasks.length - 3)} more</p>` : nothing}
    <p class="quiet agent-foot"><span>heard of ${time(agent.last_heartbeat)}</span>${lease(agent)}</p>
  </li>`;
}

function lease(agent) {
  if (!agent.lease_until || !agent.tasks.length) return nothing;
  const left = toMilliseconds(agent.lease_until) - now();
  return left > 0
    ? html`<span title=${exact(agent.lease_until)}>lease for ${duration(left)}</span>`
    : html`<span class="tone-warn" title=${exact(agent.lease_until)}>lease ran out ${duration(-left)} ago</span>`;
}

// Whoever registers an agent can call it a person, which counts for nothing.
function kindOf(agent) {
  if (agent.human) return 'person';
  return agent.says_human ? `${agent.runtime}, says that it is a person` : agent.runtime;
}

export function agentView({parts, query}) {
  return html`<a class="up" href="#/agents">${icon('chevron')}Agents</a> ${shown(
      use(apiPath(['agents', parts[1]])),
      (agent) =>
        html`${pageHead(agent.name, html`${pill(agent.status)}${idMark(agent.id)}<span class="quiet">${kindOf(agent)} · ${agent.role}</span>`, 'meta')}
          ${facts(
            [
              ['Heard of', time(agent.last_heartbeat, {focusable: true})],
              ['Lease', agent.tasks.length ? lease(agent) : 'none'],
              ['Registered', time(agent.created_at, {focusable: true})],
              ['Capabilities', agent.capabilities?.join(', ')],
              ['Works in', agent.workspace_path, 'path'],
            ],
            'strip',
          )}
          ${waitingFor(agent.thing)}
          <section aria-labelledby="holds">
            <h2 id="holds">Holds</h2>
            ${
              agent.tasks.length
                ? html`<ul class="rows">
                    ${agent.tasks.map(
                      (task) =>
                        html`<li class="item" data-row-group>
                          <div class="item-icon">${statusIcon(task.status)}</div>
                          <div class="item-main">
                            <a class="item-title stretched" data-row href=${href(['plans', task.plan], {task: task.id})}
                              >${task.name}</a
                            >
                          </div>
                          <div class="item-side">${time(task.claimed_at)}</div>
                        </li>`,
                    )}
                  </ul>`
                : html`<p class="quiet">No task.</p>`
            }
          </section>
          <section aria-labelledby="messages">
            <h2 id="messages">Messages</h2>
            ${messageList(apiPath(['messages'], {agent: agent.id, thread: query.get('thread')}), query)}
          </section>`,
    )}`;
}

export function messagesView({query}) {
  return html`${pageHead('Messages', 'Between agents, newest first.')} ${tabs(TABS, 'messages', (name) => href([name]))}
    <div class="filters">
      ${choices(
        'status',
        [
          ['', 'All'],
          ['unread', 'Unread'],
          ['read', 'Read'],
          ['archived', 'Archived'],
        ],
        query,
        {label: 'Status'},
      )}${filterBox(query, {label: 'Filter by subject or text'})}
    </div>
    ${messageList(apiPath(['messages'], {status: query.get('status'), q: query.get('q'), thread: query.get('thread')}), query)}`;
}

export function messageList(path, query) {
  const list = useList(path);
  return html`${query.get('thread') ? html`<p class="filters"><span>Only one thread</span> <a href=${withQuery({thread: ''})}>all messages</a></p>` : nothing}
  ${listOf(list, {
    kind: 'log',
    row: messageItem,
    none: {shape: 'messages', title: 'No messages.', text: 'Agents write to each other with message_send.'},
  })}`;
}

function messageItem(message) {
  return html`<li class="card log-item message is-${message.status}">
    <p class="review-meta">
      ${message.from ? thingLink(message.from.thing, message.from.name) : html`<b>the server</b>`}<span aria-label="to"
        >→</span
      >${message.to ? thingLink(message.to.thing, message.to.name) : nothing}
      <span class="mini">${words(message.type)}</span
      >${['high', 'urgent'].includes(message.priority) ? html`<span class="mini tone-warn">${message.priority}</span>` : nothing}
      ${message.status === 'unread' ? html`<span class="mini tone-run">unread</span>` : nothing}<span class="push"
        >${time(message.at, {focusable: true})}</span
      >
    </p>
    ${message.subject ? html`<p class="subject">${message.subject}</p>` : nothing}
    ${typeof message.body === 'string' ? prose(message.body) : json(message.body)}
    <p class="quiet log-foot">
      ${message.task ? html`<a href=${href(['tasks', message.task])}>task</a>` : nothing}<a
        href=${withQuery({thread: message.thread_id})}
        >thread</a
      >
    </p>
  </li>`;
}
