// What a person does to a session while an agent works on it: pause it, let it go on, and say something to the agent.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {tellDone} from './answers.js';
import {act, apiPath, isPerson} from './api.js';
import {icon} from './icons.js';
import {note, setNote} from './page.js';
import {invalidate} from './resources.js';

const ACTIONS = {
  pause: {label: 'Pause', shape: 'pause', text: 'Why it has to wait', send: 'Pause'},
  unpause: {label: 'Let it go on', shape: 'run', text: 'What the agent should know, if anything', send: 'Let it go on'},
  say: {label: 'Say to the agent', shape: 'messages', text: 'What the agent should know', send: 'Say it'},
};

export function interventions(session) {
  if (session.status !== 'active') return nothing;
  const key = `intervene ${session.id}`;
  const {open, text = '', busy, error} = note(key, {});
  const names = [session.paused ? 'unpause' : 'pause', 'say'];
  const change = (changes) => setNote(key, {open, text, ...changes});
  const send = async (event) => {
    event.preventDefault();
    const said = note(key, {}).text?.trim() || null;
    change({text: said ?? '', busy: true});
    try {
      const {done} = await act(apiPath(['sessions', session.id, 'interventions']), {action: open, text: said});
      setNote(key, undefined);
      tellDone(done);
    } catch (failure) {
      setNote(key, {open, text: said ?? '', error: failure});
    }
    invalidate((path) => /^api\/(inbox|overview|sessions)/.test(path));
  };
  const chosen = names.includes(open) ? ACTIONS[open] : null;
  return html`${
    session.paused
      ? html`<p class="notice tone-warn">
          ${icon('pause')}<span><b>A person has paused this session.</b> ${session.paused}</span>
        </p>`
      : nothing
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
              @input=${(event) => change({text: event.target.value})}
            ></textarea>
          </label>
          <div class="actions">
            <button class="button primary" ?disabled=${Boolean(busy)}>${chosen.send}</button>
          </div>
          ${error ? html`<p class="notice tone-bad" role="alert">${error.message} ${error.hint}</p>` : nothing}
        </form>`
      : nothing
  }`;
}
