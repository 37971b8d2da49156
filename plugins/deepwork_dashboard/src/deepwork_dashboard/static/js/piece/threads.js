// What stands below a line: findings of reviewers, comments with the agent's answers, and what is being written.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {isPerson} from '../api.js';
import {icon} from '../icons.js';
import {prose, time} from '../parts.js';
import {visible} from './text.js';

const STATES = {
  changed: ['run', 'changed since'],
  outdated: ['quiet', 'outdated'],
  resolved: ['good', 'resolved'],
};

export function linesWords({line, end_line: end}) {
  return end && end !== line ? `lines ${line}–${end}` : `line ${line}`;
}

function weight(must) {
  return must ? html`<span class="mini tone-bad">must</span>` : html`<span class="mini tone-run">could</span>`;
}

function replacement(quoted, suggestion) {
  const part = (text, sign, kind) =>
    text
      .split('\n')
      .map(
        (line) =>
          html`<div class="line is-${kind}"><span class="sign">${sign}</span><code>${visible(line)}</code></div>`,
      );
  return html`<div class="replacement" role="group" aria-label="Suggested replacement">
    ${part(quoted ?? '', '−', 'removed')}${suggestion === '' ? nothing : part(suggestion.replace(/\n$/, ''), '+', 'added')}
  </div>`;
}

export function findingCard({reviewer, finding}) {
  const isError = finding.level === 'error';
  return html`<article class="thread is-finding tone-${isError ? 'bad' : 'warn'}" aria-label="Finding of ${reviewer}">
    <p class="thread-head">
      ${icon('reviews')}<b>${reviewer}</b><span class="mini">${finding.level}</span
      ><span class="quiet">${linesWords(finding)}${finding.criterion ? ` · ${finding.criterion}` : ''}</span>
    </p>
    ${prose(finding.message)}
  </article>`;
}

export function commentCard(comment, {attempt, resolve, isBusy}) {
  const [tone, words] = STATES[comment.state] ?? [];
  const hasMoved = comment.attempt !== attempt;
  const body = html`<p class="thread-head">
      ${icon('messages')}<b>${comment.by ?? 'A person'}</b>${weight(comment.must)}
      ${words ? html`<span class="mini tone-${tone}">${words}</span>` : nothing}
      <span class="quiet">${linesWords(comment)}${hasMoved ? ` of attempt ${comment.attempt}` : ''}</span>
      <span class="push">${time(comment.at, {focusable: true})}</span>
    </p>
    ${
      comment.state === 'changed' || comment.state === 'outdated'
        ? html`<pre class="quoted">${visible(comment.quoted ?? '')}</pre>`
        : nothing
    }
    ${prose(visible(comment.text))}
    ${typeof comment.suggestion === 'string' ? replacement(comment.quoted, comment.suggestion) : nothing}
    ${comment.answers.map(
      (answer) =>
        html`<div class="answer-of-agent">
          <p class="thread-head">
            ${icon('agents')}<b>The agent</b
            ><span class="quiet">${answer.attempt ? `with attempt ${answer.attempt}` : ''}</span
            ><span class="push">${time(answer.at, {focusable: true})}</span>
          </p>
          ${prose(visible(answer.text))}
        </div>`,
    )}
    ${
      comment.state !== 'resolved' && isPerson()
        ? html`<div class="actions">
            <button type="button" class="button small" ?disabled=${isBusy} @click=${() => resolve(comment)}>
              ${icon('check')}Resolve
            </button>
          </div>`
        : nothing
    }`;
  return comment.state === 'resolved'
    ? html`<details class="thread is-resolved">
        <summary>${icon('check')} Resolved: <span class="cut">${comment.text}</span></summary>
        ${body}
      </details>`
    : html`<article class="thread" data-comment=${comment.id} aria-label="Comment on ${linesWords(comment)}">
        ${body}
      </article>`;
}

export function draftCard(comment, {edit, remove}) {
  return html`<article class="thread is-draft" aria-label="Your comment on ${linesWords(comment)}, not sent yet">
    <p class="thread-head">
      ${icon('messages')}<b>You</b>${weight(comment.must)}<span class="mini">not sent yet</span
      ><span class="quiet">${linesWords(comment)}</span>
      <span class="push actions">
        <button type="button" class="button small" @click=${edit}>Edit</button>
        <button type="button" class="button small" @click=${remove}>Delete</button>
      </span>
    </p>
    ${prose(comment.text)}
    ${typeof comment.suggestion === 'string' ? replacement(comment.quoted, comment.suggestion) : nothing}
  </article>`;
}

export function composer(content, {lastLine, linesOf, change, done, cancel}) {
  const {line, end_line: end, text, must, suggestion} = content;
  const isReady = text.trim() !== '' || suggestion !== null;
  const submit = (event) => {
    event.preventDefault();
    done();
  };
  const onKey = (event) => {
    if (event.key === 'Escape') cancel();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  const reach = (name) => (event) => {
    const wanted = Math.min(lastLine, Math.max(1, Number(event.target.value) || 1));
    const lines = {line, end_line: end, [name]: wanted};
    change({...lines, line: Math.min(lines.line, wanted), end_line: Math.max(lines.end_line, wanted)});
  };
  return html`<form class="thread composer" aria-label="New comment" @submit=${submit} @keydown=${onKey}>
    <p class="thread-head">
      <b>${content.key === null ? 'Comment' : 'Change the comment'}</b>
      <label
        >on lines
        <input
          type="number"
          min="1"
          max=${lastLine}
          .value=${String(line)}
          @change=${reach('line')}
          aria-label="First line"
        />
      </label>
      <label
        >to
        <input
          type="number"
          min="1"
          max=${lastLine}
          .value=${String(end)}
          @change=${reach('end_line')}
          aria-label="Last line"
        />
      </label>
      <span class="segments push" role="group" aria-label="Weight">
        <button type="button" aria-pressed=${String(must)} @click=${() => change({must: true})}>Must</button>
        <button type="button" aria-pressed=${String(!must)} @click=${() => change({must: false})}>Could</button>
      </span>
    </p>
    <textarea
      rows="3"
      aria-label="Comment"
      placeholder=${must ? 'What has to change?' : 'What could be better?'}
      .value=${text}
      @input=${(event) => change({text: event.target.value})}
    ></textarea>
    ${
      suggestion === null
        ? nothing
        : html`<label class="suggestion"
            >${end === line ? `Line ${line} becomes` : `Lines ${line} to ${end} become`}
            <textarea
              class="mono"
              rows=${Math.min(16, suggestion.split('\n').length + 1)}
              spellcheck="false"
              aria-label="Replacement"
              placeholder="Nothing: these lines go"
              .value=${suggestion}
              @input=${(event) => change({suggestion: event.target.value})}
            ></textarea>
          </label>`
    }
    <div class="actions">
      <button class="button primary" ?disabled=${!isReady}>
        ${content.key === null ? 'Add to the review' : 'Keep'}
      </button>
      <button type="button" class="button" @click=${cancel}>Cancel</button>
      <button
        type="button"
        class="button"
        aria-pressed=${String(suggestion !== null)}
        @click=${() => change({suggestion: suggestion === null ? linesOf(line, end) : null})}
      >
        ${icon('decision')}${suggestion === null ? 'Suggest a replacement' : 'Without a replacement'}
      </button>
      <span class="quiet hint">Ctrl + Enter adds, Esc cancels</span>
    </div>
  </form>`;
}
