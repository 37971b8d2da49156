// The steps of a session as a drawing: each entry of its workflow leads to the next.

// The statuses of tasks in a plan have the colours that fit the states of steps.
const STATUS_OF_STEP = {done: 'completed', current: 'in_progress', open: 'in_progress'};
// Between the steps of two groups; of larger ones the first step alone is joined with all of the other.
const MOST_EDGES = 100;

// One drawing for one state of the session, so that the element sees at once whether something has changed.
const drawings = new WeakMap();

export function drawingOf(session) {
  if (!drawings.has(session)) {
    const rows = session.steps.map(({id, name, state}) => ({
      id,
      name: name || id,
      status: state === 'current' && session.waits ? 'paused' : (STATUS_OF_STEP[state] ?? 'pending'),
    }));
    const entries = [...Map.groupBy(session.steps.keys(), (position) => session.steps[position].entry).values()];
    drawings.set(session, {rows, edges: entries.slice(1).flatMap((entry, before) => joined(entries[before], entry))});
  }
  return drawings.get(session);
}

function joined(entry, following) {
  const isSmall = entry.length * following.length <= MOST_EDGES;
  return entry.flatMap((from, index) =>
    (isSmall || index === 0 ? following : following.slice(0, 1)).map((to) => [from, to]),
  );
}
