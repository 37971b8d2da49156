// Answering what waits for a person, wherever it is shown: in the inbox, on a session, in the overview.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {carryOut, refusal} from './acting.js';
import {isPerson} from './api.js';
import {fileItem} from './files.js';
import {icon} from './icons.js';
import {note, setNote} from './page.js';
import {words} from './format.js';
import {copyable, prose, thingHref, time} from './parts.js';
import {useList} from './resources.js';
import {href} from './router.js';

const KINDS = {
  person: ['Your review', 'reviews', 'run'],
  'failed-gate': ['Failed review', 'reviews', 'warn'],
  'no-verdict': ['Review without a verdict', 'alert', 'warn'],
  runner: ['Reviewer unavailable', 'alert', 'warn'],
  override: ['Wish for an override', 'hand', 'warn'],
  'damaged-session': ['Damaged session', 'alert', 'bad'],
  blocker: ['Blocker', 'alert', 'warn'],
  'plan-stuck': ['Stuck plan', 'alert', 'warn'],
  'human-task': ['Task for a person', 'hand', 'run'],
  message: ['Message', 'messages', 'run'],
};
// Actions that end something, and look like it.
const ENDING = ['abort', 'delete', 'remove', 'skip'];

export function kindWords(kind) {
  return KINDS[kind]?.[0] ?? words(kind.replaceAll('-', ' '));
}

// Which action of which item is open, with its text and what came of it, is a note of the page under these keys.
const openKey = (item) => `answer ${item.id}`;
const taskKey = (item) => `answer ${item.id} task`;
const textKey = (item, action) => `answer ${item.id} ${action.name}`;

export function inboxItem(item, {level = 2, withLink = true, chosen = false} = {}) {
  const open = note(openKey(item));
  const action = item.actions.find(({name}) => name === open?.action);
  const address = withLink ? (item.kind === 'person' && workHref(item)) || thingHref(item.thing) : null;
  const title = address
    ? html`<a href=${address} data-row>${item.title}</a>`
    : html`<span tabindex="0" data-row>${item.title}</span>`;
  return html`<article
    class=${chosen ? 'inbox-item is-chosen' : 'inbox-item'}
    data-row-group
    data-kind=${item.kind}
    aria-label=${item.title}
  >
    <div class="inbox-icon tone-${KINDS[item.kind]?.[2] ?? 'warn'}">${icon(KINDS[item.kind]?.[1] ?? 'alert')}</div>
    <div class="inbox-body">
      <p class="inbox-meta">
        <span>${kindWords(item.kind)}</span
        >${item.who ? html`<span class="inbox-who">${item.who}</span>` : nothing}${item.since ? html`<span>waits for ${time(item.since, {focusable: true, age: true})}</span>` : nothing}
      </p>
      ${level === 2 ? html`<h2 class="inbox-title">${title}</h2>` : html`<h3 class="inbox-title">${title}</h3>`}
      ${prose(item.text)} ${level === 2 ? basis(item) : nothing}
      <div class="actions">
        ${workHref(item) ? html`<a class="button" href=${workHref(item)}>${icon('file')}See the work</a>` : nothing}
        ${isPerson() ? buttons(item, action, open) : nothing}
        ${
          !isPerson() && item.actions.length
            ? html`<p class="quiet">Only a person can answer, and you have logged in with a token of a program.</p>`
            : nothing
        }
        ${
          item.command
            ? html`<details class="in-terminal">
                <summary>In the terminal</summary>
                ${copyable(item.command, {label: 'Copy the command'})}
              </details>`
            : nothing
        }
      </div>
      ${action ? form(item, action, open) : nothing} ${refusal(open?.error)}
    </div>
  </article>`;
}

// The page of the piece of work that waits, if it is one.
export function workHref({reference}) {
  const {kind, id, step_id: step} = reference;
  return kind === 'session' && step ? href(['sessions', id, 'steps', step]) : null;
}

// What there is to decide about, and by which questions it was judged. On the overview an item is a few lines.
function basis({files = [], criteria = [], reference}) {
  return html`${
    files.length
      ? html`<section class="basis" aria-label="Files">
          <p class="basis-head">Files</p>
          <ul class="plain">
            ${files.map((path) => (reference.kind === 'session' ? fileItem({session: reference.id, step: reference.step_id, path}) : html`<li><code class="path">${path}</code></li>`))}
          </ul>
        </section>`
      : nothing
  }
  ${
    criteria.length
      ? html`<section class="basis" aria-label="Criteria">
          <p class="basis-head">Criteria</p>
          <ul class="bullets">
            ${criteria.map((criterion) => html`<li>${criterion}</li>`)}
          </ul>
        </section>`
      : nothing
  }`;
}

function buttons(item, action, open) {
  return item.actions.map(
    (offered) =>
      html` <button
        type="button"
        class=${buttonClass(offered, open)}
        aria-expanded=${String(offered === action)}
        ?disabled=${Boolean(open?.busy)}
        @click=${() => choose(item, offered)}
      >
        ${offered.label}
      </button>`,
  );
}

// What waits for a person and is about one thing, on the page of that thing.
export function waitingFor(thing) {
  const items = useList('api/inbox').items.filter((item) => item.thing === thing);
  return items.length
    ? html`<section class="waiting-here" aria-label="Waits for a person">
        ${items.map((item) => inboxItem(item, {withLink: false}))}
      </section>`
    : nothing;
}

function buttonClass(action, open) {
  if (open?.action === action.name) return 'button is-open';
  if (isEnding(action)) return 'button dangerous';
  return action.suggested ? 'button primary' : 'button';
}

export function isEnding({name}) {
  return ENDING.includes(name);
}

// An action that needs no text and no choice and ends nothing is done at once; any other opens a form.
function choose(item, action) {
  if (note(openKey(item))?.action === action.name) close(item);
  else if (!action.text && action.tasks.length < 2 && !isEnding(action)) send(item, action, null);
  else open(item, action);
}

function open(item, action) {
  setNote(openKey(item), {action: action.name});
  requestAnimationFrame(() =>
    requestAnimationFrame(() =>
      /** @type {HTMLElement} */ (formOf(item)?.querySelector('select, textarea, button'))?.focus(),
    ),
  );
}

function formOf(item) {
  return document.querySelector(`.answer[data-item="${CSS.escape(item.id)}"]`);
}

function close(item) {
  setNote(openKey(item), undefined);
}

function form(item, action, state) {
  const submit = (event) => {
    event.preventDefault();
    send(item, action, action.text && note(textKey(item, action), '').trim());
  };
  const onKey = (event) => {
    if (event.key === 'Escape') close(item);
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return html`<form class="answer" data-item=${item.id} @submit=${submit} @keydown=${onKey}>
    ${action.tasks.length > 1 ? taskChoice(item, action) : nothing}
    ${
      action.text
        ? html`<label
            >${words(action.text)}
            <textarea
              rows="3"
              required
              .value=${note(textKey(item, action), '')}
              @input=${(event) => setNote(textKey(item, action), event.target.value)}
            ></textarea>
          </label>`
        : isEnding(action)
          ? html`<p>${action.label}: this cannot be undone.</p>`
          : nothing
    }
    <div class="actions">
      <button class=${isEnding(action) ? 'button dangerous solid' : 'button primary'} ?disabled=${Boolean(state.busy)}>
        ${state.busy ? 'Sending…' : action.label}
      </button>
      <button type="button" class="button" @click=${() => close(item)}>Cancel</button>
      ${action.text ? html`<span class="quiet hint">Ctrl + Enter sends</span>` : nothing}
    </div>
  </form>`;
}

// The chosen task stays the same for all actions of an item.
function taskChoice(item, action) {
  return html`<label
    >Task
    <select @change=${(event) => setNote(taskKey(item), event.target.value)}>
      ${action.tasks.map(({id, name}) => html`<option value=${id} ?selected=${id === chosenTask(item, action)}>${name}</option>`)}
    </select>
  </label>`;
}

function chosenTask(item, action) {
  const ids = action.tasks.map(({id}) => id);
  const id = note(taskKey(item));
  return ids.includes(id) ? id : (ids[0] ?? null);
}

async function send(item, action, text) {
  const name = text === null && action.tasks.length < 2 ? undefined : action.name;
  const body = {id: item.id, action: action.name, text, state: item.state, task: chosenTask(item, action)};
  if (await carryOut(openKey(item), 'api/inbox/answer', body, {action: name}))
    setNote(textKey(item, action), undefined);
}
