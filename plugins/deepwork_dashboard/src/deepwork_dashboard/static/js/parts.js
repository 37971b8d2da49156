// The small parts that views are made of.

import {html, nothing, svg} from '../vendor/lit-html/lit-html.js';
import {repeat} from '../vendor/lit-html/directives/repeat.js';
import {parseThing} from './api.js';
import {exact, isoTime, number, plural, relative, shortId, words} from './format.js';
import {icon} from './icons.js';
import {announce, note, setNote} from './page.js';
import {href, setQuery} from './router.js';

// How each status of the project is shown: the colour of its tone, and an icon, so that no meaning is in colour alone.
const STATUS = {
  active: ['run', 'run'],
  current: ['run', 'spin'],
  open: ['run', 'circle'],
  in_progress: ['run', 'run'],
  planning: ['run', 'run'],
  ready: ['quiet', 'circle'],
  pending: ['quiet', 'circle'],
  waiting: ['quiet', 'circle'],
  archived: ['quiet', 'dot'],
  blocked: ['quiet', 'lock'],
  paused: ['warn', 'pause'],
  waits: ['warn', 'hand'],
  partial_success: ['warn', 'check'],
  completed: ['good', 'check'],
  done: ['good', 'check'],
  success: ['good', 'check'],
  merged: ['good', 'check'],
  passed: ['good', 'check'],
  failed: ['bad', 'cross'],
  damaged: ['bad', 'alert'],
  aborted: ['bad', 'cross'],
  abandoned: ['quiet', 'cross'],
  skipped: ['quiet', 'skip'],
  online: ['good', 'dot'],
  busy: ['run', 'dot'],
  offline: ['quiet', 'dot'],
};

export function tone(status) {
  return STATUS[String(status).toLowerCase()]?.[0] ?? 'quiet';
}

export function statusIcon(status) {
  const [colour, shape] = STATUS[String(status).toLowerCase()] ?? ['quiet', 'dot'];
  return html`<span class="status-icon tone-${colour}">${icon(shape, words(status))}</span>`;
}

export function pill(status, text = words(status)) {
  const [colour, shape] = STATUS[String(status).toLowerCase()] ?? ['quiet', 'dot'];
  return html`<span class="pill tone-${colour}">${icon(shape)}${text}</span>`;
}

// A relative time, with the exact one on hover and on focus. In a row that has the focus it is shown too.
export function time(value, {focusable = false, age = false} = {}) {
  if (!value) return html`<span class="quiet">–</span>`;
  const text = age ? relative(value).replace(/ ago$/, '').replace('just now', 'a moment') : relative(value);
  return html`<time
    class="when"
    datetime=${isoTime(value)}
    data-exact=${exact(value)}
    tabindex=${focusable ? '0' : nothing}
    aria-label=${focusable ? `${text}, ${exact(value)}` : nothing}
    >${text}</time
  >`;
}

// Text that agents wrote, with its line breaks. Nothing in it is markup, and no address in it is a link.
export function prose(text, {lines = 0} = {}) {
  return text ? html`<p class=${lines ? `prose clamp-${lines}` : 'prose'}>${text}</p>` : nothing;
}

// Something below a heading; nothing without it.
export function titled(title, content, level = 3) {
  if (content === nothing) return nothing;
  return html`${level === 2 ? html`<h2>${title}</h2>` : html`<h3>${title}</h3>`} ${content}`;
}

export function json(value) {
  return html`<pre class="code" tabindex="0">
${typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>`;
}

export function isEmpty(value) {
  return (
    value === null || value === undefined || value === '' || (typeof value === 'object' && !Object.keys(value).length)
  );
}

// A copyable text: an id, a command.
export function copyable(text, {shown = text, label = 'Copy'} = {}) {
  const key = `copied ${text}`;
  const copied = note(key, false);
  return html`<span class="copyable"
    ><code>${shown}</code
    ><button
      class="icon-button small"
      type="button"
      title=${label}
      aria-label=${`${label}: ${text}`}
      @click=${() => copy(text, key)}
    >
      ${icon(copied ? 'check' : 'copy')}
    </button></span
  >`;
}

async function copy(text, key) {
  try {
    await navigator.clipboard.writeText(text);
    announce('Copied.');
    setNote(key, true);
    setTimeout(() => setNote(key, undefined), 1500);
  } catch {
    announce('The browser does not allow copying here. Select the text instead.');
  }
}

export function idMark(id) {
  return copyable(id, {shown: shortId(id), label: 'Copy the id'});
}

/**
 * Nothing to show: say why, and what to do next.
 *
 * @param {{title: unknown, text?: unknown, command?: string, shape?: string}} parts
 */
export function empty({title, text, command, shape = 'check'}) {
  return html`<div class="empty">
    <div class="empty-mark">${icon(shape)}</div>
    <p class="empty-title">${title}</p>
    ${text ? html`<p class="quiet">${text}</p>` : nothing}
    ${command ? html`<p>${copyable(command, {label: 'Copy the command'})}</p>` : nothing}
  </div>`;
}

function problem(error) {
  return html`<div class="notice tone-bad" role="alert">
    ${icon('alert')}
    <div>
      <p>${error.message}</p>
      ${error.hint ? html`<p class="quiet">${error.hint}</p>` : nothing}
      ${error.isTemporary ? html`<p class="quiet">Trying again…</p>` : nothing}
    </div>
  </div>`;
}

// What a resource gives, or that it is being read, or why it cannot be.
export function shown(resource, draw) {
  if (resource.data !== undefined)
    return html`${resource.error ? problem(resource.error) : nothing}${draw(resource.data)}`;
  if (resource.error) return problem(resource.error);
  return html`<div class="loading" aria-label="Loading" role="status"><span></span><span></span><span></span></div>`;
}

export function moreButton(list) {
  if (!list.next) return nothing;
  return html`<p class="more">
    <button type="button" class="button" ?disabled=${list.loading} @click=${() => list.more()}>Show more</button>
  </p>`;
}

// The head of a page: what it is called, and a line about it.
/** @param {unknown} below */
export function pageHead(title, below = nothing, kind = 'quiet') {
  return html`<header class="head">
    <div>
      <h1 tabindex="-1">${title}</h1>
      <p class=${kind}>${below}</p>
    </div>
  </header>`;
}

// Facts as `[name, value, class]`; those without a value are left out.
export function facts(rows, kind = 'facts') {
  return html`<dl class=${kind}>
    ${rows
      .filter(([, value]) => value || value === 0)
      .map(
        ([name, value, look]) =>
          html`<div>
            <dt>${name}</dt>
            <dd class=${look ?? nothing}>${value}</dd>
          </div>`,
      )}
  </dl>`;
}

// The things of a list, with a button for more of them; `none` says why there are none.
export function listOf(list, {row, none, kind = 'rows', key = (item) => item.id}) {
  return shown(list, (items) =>
    items.length
      ? html`<ul class=${kind}>
            ${repeat(items, key, row)}
          </ul>
          ${moreButton(list)}`
      : empty(none),
  );
}

// A page that lists things of one kind, with filters by status and by words.
export function listPage(list, query, {title, noun, order, statuses, filter, row, none}) {
  const summary = list.total === null ? order : `${countOf(list.total, noun)}, ${order}`;
  const isFiltered = ['status', 'q', 'job'].some((name) => query.get(name));
  return html`${pageHead(title, `${summary[0].toUpperCase()}${summary.slice(1)}.`)}
    <div class="filters">
      ${choices('status', statuses, query, {label: 'Status'})}${filterBox(query, {label: filter})}
    </div>
    ${listOf(list, {row, none: isFiltered ? {shape: 'search', title: `No ${noun} fits this filter.`} : none})}`;
}

// Filters that stand in the address.
export function choices(name, options, query, {label, initial = ''}) {
  const chosen = query.get(name) ?? initial;
  return html`<div class="segments" role="group" aria-label=${label}>
    ${options.map(
      ([value, text, count]) =>
        html` <button
          type="button"
          aria-pressed=${String(chosen === value)}
          @click=${() => setQuery({[name]: value === initial ? '' : value})}
        >
          ${text}${count === undefined ? nothing : html` <span class="count">${number(count)}</span>`}
        </button>`,
    )}
  </div>`;
}

let typing = 0;

export function filterBox(query, {label, name = 'q'}) {
  const write = (event) => {
    clearTimeout(typing);
    const {value} = event.target;
    typing = setTimeout(() => setQuery({[name]: value.trim()}), 150);
  };
  return html`<label class="filter"
    >${icon('search')}<input
      type="search"
      placeholder=${label}
      aria-label=${label}
      autocomplete="off"
      spellcheck="false"
      value=${query.get(name) ?? ''}
      @input=${write}
  /></label>`;
}

export function tabs(options, chosen, address) {
  return html`<nav class="tabs" aria-label="Parts of this page">
    ${options.map(
      ([value, text, count]) =>
        html` <a href=${address(value)} aria-current=${value === chosen ? 'page' : nothing}
          >${text}${
            count === undefined || count === null ? nothing : html` <span class="count">${number(count)}</span>`
          }</a
        >`,
    )}
  </nav>`;
}

const ORDER = ['completed', 'skipped', 'in_progress', 'planning', 'paused', 'failed', 'pending', 'blocked'];

// How far many tasks are, as one bar.
export function progressBar(counts, total) {
  const parts = ORDER.filter((status) => counts[status]);
  let start = 0;
  const bars = parts.map((status) => {
    const width = (counts[status] / total) * 100;
    start += width;
    return svg`<rect class="bar bar-${status}" x=${start - width} y="0" width=${width} height="6"/>`;
  });
  const text = parts.map((status) => `${number(counts[status])} ${words(status).toLowerCase()}`).join(', ');
  return html`<svg
    class="progress"
    viewBox="0 0 100 6"
    preserveAspectRatio="none"
    role="img"
    aria-label=${text || 'no tasks'}
  >
    <rect class="bar-ground" width="100" height="6" />
    ${bars}
  </svg>`;
}

export {ORDER as TASK_ORDER};

// How far a session is: a part for each step.
export function stepBar([position, count], {waits = false} = {}) {
  const steps = Math.max(1, count);
  const parts = Array.from({length: steps}, (_, index) => {
    const state =
      index + 1 < position ? 'completed' : index + 1 === position ? (waits ? 'paused' : 'in_progress') : 'ground';
    return svg`<rect class="bar bar-${state}" x=${(index * 100) / steps} y="0" width=${Math.max(0.4, 100 / steps - (steps > 40 ? 0 : 1))} height="6"/>`;
  });
  return html`<svg
    class="progress"
    viewBox="0 0 100 6"
    preserveAspectRatio="none"
    role="img"
    aria-label=${`Step ${position} of ${count}`}
  >
    ${parts}
  </svg>`;
}

// The address of a thing of the API: `session:ID`.
export function thingHref(thing) {
  const {id, page} = parseThing(thing);
  return page && id ? href([page, id]) : null;
}

export function thingLink(thing, text, fallback = '–') {
  const address = thingHref(thing);
  return address ? html`<a href=${address}>${text ?? thing}</a>` : html`<span>${text ?? fallback}</span>`;
}

export function countOf(count, word, wordsOfMany) {
  return plural(count, word, wordsOfMany);
}
