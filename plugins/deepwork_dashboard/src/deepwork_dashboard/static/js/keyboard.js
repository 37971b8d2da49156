// Keys: `/` searches, `j` and `k` go through rows, `g` and a letter goes to a view, `?` shows them all.

import {html} from '../vendor/lit-html/lit-html.js';
import {icon} from './icons.js';
import {go, href} from './router.js';
import {NAVIGATION} from './views.js';

const SEQUENCE_MS = 1200;
let goPressedAt = -Infinity;
let offered = () => [];

export function startKeys(viewsOfViewer) {
  offered = viewsOfViewer;
  addEventListener('keydown', onKey);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !offered().length) return;
  const isWriting = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (event.key === 'Escape' && isWriting?.type === 'search') isWriting.blur();
  if (isWriting || document.querySelector('dialog[open]')) return;
  const isGoing = performance.now() - goPressedAt < SEQUENCE_MS;
  const action = isGoing ? destination(event.key) : (ownKeys().keys?.[event.key] ?? KEYS[event.key]);
  goPressedAt = -Infinity;
  if (action && action() !== false) event.preventDefault();
}

function destination(key) {
  const view = NAVIGATION.find((entry) => entry.key === key && offered().includes(entry.name));
  return view && (() => go(href([view.name])));
}

export function openHelp() {
  /** @type {HTMLDialogElement} */ (document.getElementById('help'))?.showModal();
}

/** @returns {HTMLElement | null} */
function find(selector) {
  return document.querySelector(selector);
}

// A view may have keys of its own: an element with `data-keys` has them as `keys`, and their words as `help`.
/** @returns {{keys?: Record<string, () => unknown>, help?: [string[], string][]}} */
function ownKeys() {
  return /** @type {any} */ (find('main [data-keys]')) ?? {};
}

const KEYS = {
  '/': () => document.getElementById('search')?.focus(),
  '?': () => openHelp(),
  g: () => {
    goPressedAt = performance.now();
  },
  j: () => step(1),
  k: () => step(-1),
  f: () => find('main .filter input')?.focus(),
  u: () => find('main .up')?.click(),
};

// Rows are what carries `data-row`: a link or a button in the order of the page. Long lists know their own next row.
function step(direction) {
  const list = /** @type {import('./elements/virtual_rows.js').VirtualRows | null} */ (find('main virtual-rows'));
  if (list?.rows.length && list.step(direction)) return;
  /** @type {NodeListOf<HTMLElement>} */
  const all = document.querySelectorAll('main [data-row]');
  const rows = [...all].filter((row) => row.offsetParent !== null);
  const focused = /** @type {HTMLElement} */ (
    document.activeElement?.closest('[data-row-group]')?.querySelector('[data-row]') ?? document.activeElement
  );
  const index = rows.indexOf(focused);
  const next = rows[index < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, index + direction))];
  next?.focus();
  next?.scrollIntoView({block: 'nearest'});
}

/** @type {[string[], string][]} */
const LIST_HELP = [
  [['f'], 'filter the list on the page'],
  [['j'], 'next row'],
  [['k'], 'row before'],
  [['Enter'], 'open the row'],
];

/** @returns {[string[], string]} */
function keysOf({key, text}) {
  return [['g', key], `go to ${text}`];
}

export function helpDialog() {
  /** @type {[string[], string][]} */
  const rows = [
    ...(ownKeys().help ?? LIST_HELP),
    [['/'], 'search everything'],
    [['u'], 'up, to the list'],
    ...NAVIGATION.filter(({name}) => offered().includes(name)).map(keysOf),
    [['?'], 'show these keys'],
  ];
  return html`<dialog id="help" aria-labelledby="help-title">
    <form method="dialog">
      <h2 id="help-title">Keys</h2>
      <button class="icon-button" aria-label="Close">${icon('cross')}</button>
    </form>
    <dl class="keys">
      ${rows.map(
        ([keys, text]) =>
          html`<div>
            <dt>${keys.map((key) => html`<kbd>${key}</kbd>`)}</dt>
            <dd>${text}</dd>
          </div>`,
      )}
    </dl>
    <p class="quiet">In a plan: arrow keys move, <kbd>+</kbd> and <kbd>−</kbd> zoom, <kbd>0</kbd> shows all.</p>
  </dialog>`;
}
