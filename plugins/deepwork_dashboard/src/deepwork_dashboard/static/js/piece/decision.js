// The decision of a person about a piece of work: what was written so far, and the answers that can be given.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {carryOut} from '../acting.js';
import {isEnding} from '../answers.js';
import {isPerson} from '../api.js';
import {icon} from '../icons.js';
import {note} from '../page.js';
import {countOf} from '../parts.js';

const STATES = {
  saving: 'Saving…',
  unsaved: 'Not saved on the server yet; this browser keeps it.',
  saved: 'Draft saved.',
};

export function decisionBar({path, piece, draft, attempt, newest}) {
  const {item} = piece;
  const key = `decide ${path}`;
  const {busy, error, chosen} = note(key, {});
  const {text, comments, composer} = draft.content;
  if (!item) {
    if (!error && draft.isEmpty) return nothing;
    return html`<section class="decision">
      ${refusal(error ?? {status: 409, message: 'Meanwhile this no longer waits for you.'}, piece, newest)}
      ${text ? html`<p class="prose" aria-label="Your draft">${text}</p>` : nothing}
    </section>`;
  }
  if (!isPerson())
    return html`<p class="quiet">Only a person can answer, and you have logged in with a token of a program.</p>`;
  const musts = comments.filter(({must}) => must).length;
  const isOld = attempt !== newest;
  const actions = item.actions.filter((action) => !isEnding(action));
  return html`<section class=${composer ? 'decision is-writing' : 'decision'} aria-label="Your decision">
    ${error ? refusal(error, piece, newest) : nothing}
    <textarea
      rows=${Math.min(6, text.split('\n').length)}
      id="decision-text"
      aria-label="What you say to all of it"
      placeholder="What you say to all of it"
      .value=${text}
      @input=${(event) => draft.change({text: event.target.value}, attempt)}
    ></textarea>
    <div class="actions">
      ${actions.map((action) => {
        const lacks = lacking(action, draft.content);
        return html`<button
          type="button"
          class=${buttonClass(action, comments)}
          title=${isOld ? 'There is a newer attempt' : (lacks ?? '')}
          ?disabled=${busy || isOld || Boolean(composer) || lacks !== null}
          @click=${() => send(action)}
        >
          ${busy && chosen === action.name ? 'Sending…' : action.label}
        </button>`;
      })}
    </div>
    <p class="decision-count">
      ${isOld ? html`<b class="tone-warn">There is an attempt ${newest}.</b>` : nothing}
      ${comments.length ? html`<b>${countOf(comments.length, 'comment')}</b>${musts ? html`, ${musts} must` : nothing}` : html`<span class="quiet">No comments yet</span>`}
      ${draft.isEmpty ? nothing : html`<span class="quiet"> · ${STATES[draft.state]}</span>`}
      ${composer ? html`<span class="quiet"> · Add the comment that you are writing, or cancel it; then decide.</span>` : nothing}
    </p>
  </section>`;

  async function send(action) {
    const {text: said, comments: written} = draft.content;
    const more = action.comments && {comments: written.map(sent)};
    const body = {id: item.id, action: action.name, text: said.trim() || null, state: item.state, ...more};
    if (await carryOut(key, 'api/inbox/answer', body, {chosen: action.name})) draft.drop();
  }
}

function sent({file, line, end_line, text, must, suggestion}) {
  return {file, line, end_line, text, must, ...(suggestion !== null && {suggestion})};
}

// Why an action cannot be done yet; null if it can.
function lacking(action, {text, comments}) {
  const hasMust = comments.some(({must}) => must);
  if (action.name === 'pass') return hasMust ? 'A comment says what must change' : null;
  if (action.comments) return text.trim() || comments.length ? null : 'Say what has to change';
  if (comments.length) return 'Your comments would be lost';
  return action.text && !text.trim() ? `Say it first: ${action.text}` : null;
}

function buttonClass({name}, comments) {
  return name === (comments.length ? 'changes' : 'pass') ? 'button primary' : 'button';
}

// Somebody else was first, or the work has changed: what was decided is said, and the draft stays.
function refusal(error, piece, newest) {
  const decided = piece.attempts.find(({number}) => number === newest)?.reviewers.filter(({by}) => by) ?? [];
  return html`<div class="notice tone-bad" role="alert">
    ${icon('alert')}
    <div>
      <p>${error.message}${error.hint ? html` ${error.hint}` : nothing}</p>
      ${decided.map(({by, passed, feedback}) => html`<p><b>${by}</b> ${passed ? 'has passed it' : 'has requested changes'}${feedback ? `: ${feedback}` : '.'}</p>`)}
      ${error.status === 409 ? html`<p>What you have written is kept as a draft.</p>` : nothing}
    </div>
  </div>`;
}
