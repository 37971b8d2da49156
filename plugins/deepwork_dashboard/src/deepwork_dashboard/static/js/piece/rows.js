// What is drawn of a file: its rows, and the parts they fall into. Pure functions; the rows of a file are made once.

const known = new WeakMap();
// Unchanged lines that are shown around what has changed, and how many are worth hiding.
const CONTEXT = 3;
const WORTH_HIDING = 5;
// Rows of one part that is drawn, or not, as a whole.
const LARGEST_PART = 20;

// A row is a line of the file, a line that was removed, or a block of the file as it is rendered.
export function rowsOf(file, isRendered) {
  const key = isRendered ? file.blocks : file;
  if (!known.has(key))
    known.set(
      key,
      (isRendered ? blocks(file) : lines(file)).map((row, index) => ({...row, index})),
    );
  return known.get(key);
}

function blocks(file) {
  return file.blocks.map((block) => ({
    kind: 'block',
    block,
    from: block.lines?.[0] ?? null,
    line: block.lines?.[1] ?? null,
  }));
}

function lines({lines: texts, changes}) {
  const rows = [];
  let [old, line] = [1, 1];
  const same = (end) => {
    for (; line < end; line += 1, old += 1)
      rows.push({kind: 'same', old: changes ? old : null, from: line, line, text: texts[line - 1]});
  };
  for (const [, removed, first, count] of changes ?? []) {
    same(first);
    const other = (list, index) => (removed.length === count ? list[index] : undefined);
    const added = texts.slice(first - 1, first - 1 + count);
    removed.forEach((text, index) => {
      rows.push({kind: 'removed', old, from: null, line: null, text, other: other(added, index)});
      old += 1;
    });
    added.forEach((text, index) => {
      rows.push({kind: 'added', old: null, from: line, line, text, other: other(removed, index)});
      line += 1;
    });
  }
  same(texts.length + 1);
  return rows;
}

// The parts of a file: rows that are drawn together, gaps of unchanged rows, and lines below which something stands.
export function partsOf(rows, {anchors, opened, isWhole}) {
  const isShown = isWhole ? null : near(rows, anchors, opened);
  const parts = [];
  for (let index = 0; index < rows.length; index += 1) {
    const row = rows[index];
    const kind = isShown && !isShown[index] ? 'gap' : 'rows';
    const last = parts.at(-1);
    const isFull = last?.kind === 'rows' && (last.rows.length >= LARGEST_PART || last.isClosed);
    if (last?.kind !== kind || isFull) parts.push({kind, rows: [row], index, isClosed: false});
    else last.rows.push(row);
    if (row.line !== null && kind === 'rows') {
      const line = anchoredAt(row, anchors);
      if (line.length) Object.assign(parts.at(-1), {isClosed: true, below: line});
    }
  }
  return parts;
}

function anchoredAt(row, anchors) {
  const found = [];
  for (let line = row.from; line <= row.line; line += 1) if (anchors.has(line)) found.push(line);
  return found;
}

function near(rows, anchors, opened) {
  const isShown = new Uint8Array(rows.length);
  rows.forEach((row, index) => {
    if (row.kind === 'same' && !anchors.has(row.line)) return;
    isShown.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  });
  let start = 0;
  for (let index = 0; index <= rows.length; index += 1) {
    if (index < rows.length && !isShown[index]) continue;
    if (index > start && (index - start < WORTH_HIDING || opened.has(start))) isShown.fill(1, start, index);
    start = index + 1;
  }
  return isShown;
}

// How many lines a file gained and lost.
export function sizeOf({changes}) {
  let [added, removed] = [0, 0];
  for (const [, lost, , count] of changes ?? []) {
    added += count;
    removed += lost.length;
  }
  return {added, removed};
}
