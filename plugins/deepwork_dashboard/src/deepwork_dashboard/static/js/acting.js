// What a person has the server do: that it is under way, that it is done, or why not.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {act} from './api.js';
import {icon} from './icons.js';
import {announce, note, setNote} from './page.js';
import {invalidateAll} from './resources.js';

// Meanwhile the note of this key is `busy`; it goes when that is done, and else has the `error`. True: it is done.
export async function carryOut(key, path, body, kept = {}) {
  setNote(key, {...kept, busy: true});
  try {
    const {done} = await act(path, body);
    setNote(key, undefined);
    tellDone(done);
    return true;
  } catch (error) {
    setNote(key, {...kept, error});
    return false;
  } finally {
    invalidateAll();
  }
}

export function refusal(error) {
  return error
    ? html`<p class="notice tone-bad" role="alert">${error.message}${error.hint ? html` ${error.hint}` : nothing}</p>`
    : nothing;
}

// What was done is shown for a while, and told to readers of the screen.
export function tellDone(text) {
  announce(text);
  setNote('done', text);
  setTimeout(() => note('done') === text && setNote('done', undefined), 8000);
}

export function doneNotice() {
  const text = note('done');
  return text
    ? html`<div class="toast">
        ${icon('check')}<span>${text}</span>
        <button type="button" class="icon-button small" aria-label="Close" @click=${() => setNote('done', undefined)}>
          ${icon('cross')}
        </button>
      </div>`
    : nothing;
}
