// Where the tasks of a plan stand: in layers from left to right, each right of all that it needs.

export const NODE = {width: 184, height: 46};
const GAP = {column: 46, row: 14, block: 40};
const SWEEPS = 6;

// `edges` are pairs of positions: the first is needed by the second. Gives `nodes` ({x, y, layer} by position),
// `width` and `height`. A plan of n tasks and e edges takes about n log n + e steps.
export function layout(count, edges) {
  const needs = Array.from({length: count}, () => []);
  const neededBy = Array.from({length: count}, () => []);
  for (const [from, to] of edges) {
    needs[to].push(from);
    neededBy[from].push(to);
  }
  const linked = [];
  const loose = [];
  for (let node = 0; node < count; node += 1) (needs[node].length || neededBy[node].length ? linked : loose).push(node);
  const nodes = Array.from({length: count}, () => ({x: 0, y: 0, layer: 0}));
  const columns = split(layersOf(linked, needs, neededBy, nodes), tallest(linked.length));
  arrange(columns, needs, neededBy);
  const height = place(columns, needs, neededBy, nodes);
  placeLoose(loose, nodes, linked.length ? height + GAP.block : 0);
  return {nodes, ...size(nodes)};
}

// How many tasks stand above each other at most, so that the whole has about the form of a screen.
function tallest(count) {
  return Math.max(8, Math.ceil(Math.sqrt(count) * 1.6));
}

// A task is one layer right of the last one that it needs. Tasks of a circle, which no plan has, stay in the first.
function layersOf(linked, needs, neededBy, nodes) {
  const open = new Map(linked.map((node) => [node, needs[node].length]));
  let ready = linked.filter((node) => !open.get(node));
  const layers = [];
  while (ready.length) {
    layers.push(ready);
    const next = [];
    for (const node of ready) {
      open.delete(node);
      for (const dependent of neededBy[node]) {
        const left = open.get(dependent) - 1;
        open.set(dependent, left);
        if (!left) next.push(dependent);
      }
    }
    ready = next;
  }
  if (open.size) layers.push([...open.keys()]);
  layers.forEach((layer, index) =>
    layer.forEach((node) => {
      nodes[node].layer = index;
    }),
  );
  return layers;
}

// A layer that is too tall becomes several columns.
function split(layers, rows) {
  return layers.flatMap((layer) => {
    const parts = Math.ceil(layer.length / rows);
    const share = Math.ceil(layer.length / parts);
    return Array.from({length: parts}, (_, index) => layer.slice(index * share, (index + 1) * share));
  });
}

// Order each column by the mean place of the neighbours, forth and back: fewer edges cross.
function arrange(columns, needs, neededBy) {
  const place = new Map();
  const note = (column) => column.forEach((node, index) => place.set(node, (index + 0.5) / column.length));
  columns.forEach(note);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    for (const column of forth ? columns : [...columns].reverse()) {
      const neighbours = forth ? needs : neededBy;
      const wish = new Map(
        column.map((node) => [node, mean(neighbours[node].map((other) => place.get(other))) ?? place.get(node)]),
      );
      column.sort((left, right) => wish.get(left) - wish.get(right));
      note(column);
    }
  }
}

function mean(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

// Columns stand beside each other; in a column each task is as near to what it needs as those above it allow.
function place(columns, needs, neededBy, nodes) {
  const step = NODE.height + GAP.row;
  const height = Math.max(0, ...columns.map((column) => column.length)) * step;
  columns.forEach((column, index) => {
    const top = (height - column.length * step) / 2;
    column.forEach((node, row) =>
      Object.assign(nodes[node], {x: index * (NODE.width + GAP.column), y: top + row * step}),
    );
  });
  for (const [order, neighbours] of [
    [columns, needs],
    [[...columns].reverse(), neededBy],
  ]) {
    for (const column of order) settle(column, neighbours, nodes, step, height);
  }
  return Math.max(0, height - GAP.row);
}

function settle(column, neighbours, nodes, step, height) {
  let lowest = 0;
  column.forEach((node, row) => {
    const wish = mean(neighbours[node].map((other) => nodes[other].y)) ?? nodes[node].y;
    const highest = height - (column.length - row) * step;
    nodes[node].y = Math.min(highest, Math.max(lowest, wish));
    lowest = nodes[node].y + step;
  });
}

// Tasks that need nothing and that nothing needs: a block of their own, below the others.
function placeLoose(loose, nodes, top) {
  const across = Math.max(1, Math.ceil(Math.sqrt(loose.length * 0.45)));
  loose.forEach((node, index) => {
    Object.assign(nodes[node], {
      x: (index % across) * (NODE.width + GAP.column / 3),
      y: top + Math.floor(index / across) * (NODE.height + GAP.row),
    });
  });
}

function size(nodes) {
  return {
    width: nodes.reduce((most, {x}) => Math.max(most, x + NODE.width), 0),
    height: nodes.reduce((most, {y}) => Math.max(most, y + NODE.height), 0),
  };
}

// All that a node needs, and all that needs it, by one step or many.
export function lineOf(node, edges) {
  const walk = (from, to) => {
    const next = Map.groupBy(edges, (edge) => edge[from]);
    const seen = new Set();
    const open = [node];
    while (open.length) {
      for (const edge of next.get(open.pop()) ?? []) {
        if (!seen.has(edge[to])) open.push(edge[to]);
        seen.add(edge[to]);
      }
    }
    return seen;
  };
  return {before: walk(1, 0), after: walk(0, 1)};
}
