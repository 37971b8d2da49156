// What a person does to a session or a plan while agents work on it: pause it, let it go on, and say something to them.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {carryOut, refusal} from './acting.js';
import {isPerson} from './api.js';
import {icon} from './icons.js';
import {note, setNote} from './page.js';

const ACTIONS = {
  pause: {label: 'Pause', shape: 'pause', text: 'Why it has to wait', send: 'Pause'},
  unpause: {
    label: 'Let it go on',
    shape: 'run',
    text: 'What its agents should know, if anything',
    send: 'Let it go on',
  },
  say: {label: 'Say to the agent', shape: 'messages', text: 'What the agent should know', send: 'Say it'},
};

// `noun` is what is paused, `others` are the actions besides.
export function interventions({path, noun, paused, others = []}) {
  const key = `intervene ${path}`;
  const {open, text = '', busy, error} = note(key, {});
  const names = [paused === null ? 'pause' : 'unpause', ...others];
  const send = (event) => {
    event.preventDefault();
    // What was typed last may not be drawn yet.
    const {text: written = ''} = note(key, {});
    carryOut(key, `${path}/interventions`, {action: open, text: written.trim() || null}, {open, text: written});
  };
  const chosen = names.includes(open) ? ACTIONS[open] : null;
  return html`${
    paused === null
      ? nothing
      : html`<p class="notice tone-warn">
          ${icon('pause')}<span><b>A person has paused this ${noun}.</b> ${paused}</span>
        </p>`
  }
  ${
    isPerson()
      ? html`<div class="actions">
          ${names.map(
            (name) =>
              html`<button
                type="button"
                class=${open === name ? 'button is-open' : 'button'}
                aria-expanded=${String(open === name)}
                @click=${() => setNote(key, open === name ? undefined : {open: name})}
              >
                ${icon(ACTIONS[name].shape)}${ACTIONS[name].label}
              </button>`,
          )}
        </div>`
      : nothing
  }
  ${
    chosen
      ? html`<form class="answer" @submit=${send}>
          <label
            >${chosen.text}
            <textarea
              rows="2"
              ?required=${open !== 'unpause'}
              .value=${text}
              @input=${(event) => setNote(key, {open, text: event.target.value})}
            ></textarea>
          </label>
          <div class="actions">
            <button class="button primary" ?disabled=${Boolean(busy)}>${chosen.send}</button>
          </div>
          ${refusal(error)}
        </form>`
      : nothing
  }`;
}
