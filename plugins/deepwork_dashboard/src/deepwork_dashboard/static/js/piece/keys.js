// The keys on the page of a piece of work: through its lines and files, and to what can be said of them.

import {layoutOf} from './files.js';
import {choose, extendTo, focused, selection, unchoose} from './selection.js';

export const HELP = [
  [['j'], 'next line'],
  [['k'], 'line before'],
  [['Shift', 'j'], 'choose one line more, downwards'],
  [['Shift', 'k'], 'choose one line more, upwards'],
  [['n'], 'next change, comment or finding'],
  [['p'], 'the one before'],
  [[']'], 'next file'],
  [['['], 'file before'],
  [['c'], 'comment on the lines'],
  [['s'], 'suggest a replacement'],
  [['v'], 'rendered, or as lines'],
  [['o'], 'open or close the file'],
  [['d'], 'decide: say something to all of it'],
];

export function showFile(path, {isFocused = true} = {}) {
  /** @type {HTMLElement | null} */
  const card = document.querySelector(`[data-file="${CSS.escape(path)}"]`);
  card?.scrollIntoView({block: 'start'});
  /** @type {HTMLElement | null} */
  const target = card?.querySelector('.lines') ?? card?.querySelector('button') ?? null;
  if (isFocused) target?.focus({preventScroll: true});
}

// Focus the row of a line that is in sight.
export function showLine(path, line) {
  const selector = `[data-file="${CSS.escape(path)}"] .line[data-line="${line}"]`;
  /** @type {HTMLElement | null} */
  const row = document.querySelector(selector);
  row?.focus({preventScroll: true});
}

export function keysOf(work, files) {
  const move = (direction) => step(work, files, direction);
  return {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: onLine(() => move(1)),
    ArrowUp: onLine(() => move(-1)),
    J: () => extend(move, 1),
    K: () => extend(move, -1),
    n: () => stepMarked(work, files, 1),
    p: () => stepMarked(work, files, -1),
    ']': () => stepFile(files, 1),
    '[': () => stepFile(files, -1),
    c: () => write(work, files),
    s: () => write(work, files, {withSuggestion: true}),
    v: () => press('[data-rendered]'),
    o: () => press('.file-name'),
    d: () => document.getElementById('decision-text')?.focus(),
    Escape: () => unchoose(),
  };
}

// The arrows scroll, unless a line has the focus.
function onLine(action) {
  return () => {
    if (!focused()) return false;
    action();
    return true;
  };
}

/** @returns {HTMLElement | null} */
function currentCard() {
  return document.activeElement?.closest('[data-file]') ?? document.querySelector('main [data-file]');
}

// A button of the file in which the keys are.
function press(selector) {
  /** @type {HTMLElement | null} */
  const button = currentCard()?.querySelector(selector) ?? null;
  button?.click();
}

// Rows of all open files, in order.
function places(work, files) {
  return files.flatMap((file) =>
    layoutOf(work, file)
      .parts.filter(({kind}) => kind === 'rows')
      .flatMap(({rows, below, index}) =>
        rows.map((row) => ({
          file,
          row,
          start: index,
          isMarked: row.kind === 'added' || row.kind === 'removed' || Boolean(below && row === rows.at(-1)),
        })),
      ),
  );
}

function whereIn(all) {
  const at = focused();
  if (at) return all.findIndex(({file, row}) => file.path === at.path && row.index === at.index);
  const path = document.activeElement?.closest('[data-file]')?.getAttribute('data-file');
  return path ? all.findIndex(({file}) => file.path === path) - 1 : -1;
}

function show({file, row, start}) {
  const card = document.querySelector(`[data-file="${CSS.escape(file.path)}"]`);
  /** @type {import('../elements/line_rows.js').LineRows | null} */
  const part = card?.querySelector(`line-rows[data-start="${start}"]`);
  part?.show(row.index);
}

function step(work, files, direction) {
  const all = places(work, files);
  const next = all[Math.max(0, whereIn(all) + direction)];
  if (next) show(next);
}

// To the first row of the next run of marked ones.
function stepMarked(work, files, direction) {
  const all = places(work, files);
  const isStart = (index) =>
    all[index].isMarked && !(all[index - 1]?.isMarked && all[index - 1].file === all[index].file);
  let index = whereIn(all) + direction;
  while (index >= 0 && index < all.length && !isStart(index)) index += direction;
  if (all[index]) show(all[index]);
}

function stepFile(files, direction) {
  const path = currentCard()?.dataset.file;
  const index = document.activeElement?.closest('[data-file]') ? files.findIndex((file) => file.path === path) : -1;
  const next = files[Math.min(files.length - 1, Math.max(0, index + direction))];
  if (next) showFile(next.path);
}

// Choose from the line that has the focus to the one to which the key leads.
function extend(move, direction) {
  const before = focused();
  if (before && before.line !== null && selection()?.path !== before.path)
    choose(before.path, before.from, before.line);
  move(direction);
  const at = focused();
  if (at && at.path === before?.path) extendTo(at);
}

// Of a line that was removed, what stands next to it is meant.
function write(work, files, options) {
  const at = focused();
  const file = files.find(({path}) => path === (selection() ?? at)?.path);
  if (!file) return work.write(undefined, {line: null}, options);
  const {content, rows} = layoutOf(work, file);
  const isLine = ({line}) => line !== null;
  const row = at && (rows.slice(at.index).find(isLine) ?? rows.slice(0, at.index).findLast(isLine));
  return work.write(content, selection() ?? {line: row?.from ?? null, end: row?.line}, options);
}
