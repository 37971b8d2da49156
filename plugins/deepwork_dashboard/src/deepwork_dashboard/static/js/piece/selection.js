// Which lines of which file are chosen, and how keys and the mouse choose them.

import {redraw} from '../page.js';

// `from` is where choosing began, `to` where it is now.
let chosen = null;

export function selection() {
  return chosen && {path: chosen.path, line: Math.min(chosen.from, chosen.to), end: Math.max(chosen.from, chosen.to)};
}

export function choose(path, from, to = from) {
  chosen = {path, from, to};
  redraw();
}

export function unchoose() {
  chosen = null;
  redraw();
}

// The row that has the focus: its file, its position, and its lines.
export function focused() {
  return rowAt(document.activeElement);
}

export function rowAt(element) {
  /** @type {HTMLElement | null} */
  const row = element?.closest?.('.line[data-index]') ?? null;
  /** @type {HTMLElement | null} */
  const file = row?.closest('[data-file]') ?? null;
  if (!row || !file) return null;
  const number = (text) => (text === undefined ? null : Number(text));
  const {index, from, line} = row.dataset;
  return {path: file.dataset.file, index: Number(index), from: number(from), line: number(line)};
}

// Choose on from where choosing began, if that is in the same file.
export function extendTo({path, from, line}) {
  if (line === null) return;
  if (chosen?.path !== path) choose(path, from, line);
  else choose(path, chosen.from, line < chosen.from ? from : line);
}

// Numbers of lines are dragged over. What is chosen when the button comes up is given to `done`.
export function dragging(done) {
  return (event) => {
    const start = event.button === 0 && event.target.closest('.ln') ? rowAt(event.target) : null;
    if (!start || start.line === null) return;
    event.preventDefault();
    if (event.shiftKey) extendTo(start);
    else choose(start.path, start.from, start.line);
    const over = (move) => {
      const row = rowAt(document.elementFromPoint(move.clientX, move.clientY));
      if (row?.path === start.path) extendTo(row);
    };
    addEventListener('pointermove', over);
    addEventListener(
      'pointerup',
      () => {
        removeEventListener('pointermove', over);
        done();
      },
      {once: true},
    );
  };
}
