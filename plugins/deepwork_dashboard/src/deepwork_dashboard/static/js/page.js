// When the page is drawn: at most once a frame, from what the other modules hold. Nothing else touches the document.

let draw = () => {};
let scheduled = false;

export function setDraw(callback) {
  draw = callback;
}

export function redraw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    draw();
  });
}

// What is told to readers of the screen, once, without moving their place.
let announcement = '';

export function announce(text) {
  announcement = text;
  redraw();
}

export function announced() {
  return announcement;
}

// Marks that views keep between drawings and that are no part of the address: an open form, a text being written.
const notes = new Map();

export function note(key, initial) {
  return notes.has(key) ? notes.get(key) : initial;
}

export function setNote(key, value) {
  if (value === undefined) notes.delete(key);
  else notes.set(key, value);
  redraw();
}
