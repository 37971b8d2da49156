// A piece of work, as a person reviews it: the files of an attempt as they were judged, and what was said of them.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';
import {carryOut, tellDone} from '../acting.js';
import {apiPath, isPerson, read} from '../api.js';
import {fileItem} from '../files.js';
import {words} from '../format.js';
import {icon} from '../icons.js';
import {announce, note} from '../page.js';
import {countOf, empty, facts, pill, prose, shown, statusIcon, time} from '../parts.js';
import {decisionBar} from '../piece/decision.js';
import {carried, draftOf} from '../piece/draft.js';
import {fileCard, layoutOf, sizeMark} from '../piece/files.js';
import {HELP, keysOf, showFile, showLine} from '../piece/keys.js';
import {dragging, selection, unchoose} from '../piece/selection.js';
import {visible} from '../piece/text.js';
import {commentCard} from '../piece/threads.js';
import {use} from '../resources.js';
import {href, setQuery, withQuery} from '../router.js';

const isNarrow = matchMedia('(max-width: 1080px)');
const RESULTS = {
  waiting: ['waits', 'waits for a person'],
  needs_work: ['failed', 'needs work'],
  passed: ['passed', 'passed'],
  not_judged: ['pending', 'not judged'],
};

export function pieceView({parts, query}) {
  const [, session, , step] = parts;
  const path = apiPath(['sessions', session, 'steps', step]);
  return html`<a class="up" href=${href(['sessions', session], {step})}>${icon('chevron')}Session</a> ${shown(
      use(path),
      (piece) => page(path, piece, query),
    )}`;
}

function page(path, piece, query) {
  const draft = draftOf(path, piece);
  const newest = piece.attempts.at(-1)?.number ?? null;
  const wanted = Number(query.get('attempt')) || draft.content.attempt || newest;
  const attempt = piece.attempts.find(({number}) => number === wanted) ?? piece.attempts.at(-1);
  if (!attempt) return html`${head(piece)}${beside(piece)}${nothingYet(piece)}`;
  const against = query.get('against');
  const files = use(
    apiPath(['sessions', piece.session, 'steps', piece.step, 'files'], {attempt: attempt.number, against}),
    {
      isFixed: true,
    },
  );
  const list = files.data?.files ?? [];
  const work = workOf({path, piece, attempt, newest, draft, against: files.data?.against, list});
  return html`<div class="piece" data-keys .keys=${keysOf(work, list)} .help=${HELP}>
    ${head(piece)} ${banner(work, draft, piece, query)} ${attempts(piece, attempt, files.data, query)}
    <div class="piece-body">
      <aside class="piece-side" aria-label="About this attempt">
        ${fileList(work, list)} ${criteria(attempt)} ${verdicts(attempt)} ${beside(piece)}
      </aside>
      <div class="piece-files">
        ${shown(files, () =>
          list.length
            ? repeat(
                list,
                (file) => file.path,
                (file) => fileCard(work, file),
              )
            : empty({shape: 'file', title: 'This attempt has no files.'}),
        )}
        ${withoutPlace(work, list)}
      </div>
    </div>
    ${decisionBar({path, piece, draft, attempt: attempt.number, newest})}
  </div>`;
}

// What the page knows of the attempt that is shown, and what can be done to it.
function workOf({path, piece, attempt: {number, reviewers}, newest, draft, against, list}) {
  const {content} = draft; // as it is drawn; what is done begins from what it is then
  const busyKey = `resolve ${path}`;
  const change = (changes) => draft.change(changes, number);
  const compose = (composer) => {
    change({composer});
    onceDrawn(() => {
      /** @type {HTMLElement} */ (document.querySelector('.composer textarea'))?.focus({preventScroll: true});
      document.querySelector('.composer')?.scrollIntoView({block: 'nearest'});
    });
  };
  // The keys go on from the line that was written about.
  const leave = ({file, end_line: line}) => {
    unchoose();
    onceDrawn(() => showLine(file, line));
  };
  const isWritable = isPerson() && (content.attempt === null || content.attempt === number);
  const work = {
    path,
    session: piece.session,
    step: piece.step,
    attempt: number,
    newest,
    against,
    reviewers,
    comments: piece.comments,
    draft: content,
    isBusy: Boolean(note(busyKey)?.busy),
    // Begin to write about the lines that are chosen, or about these.
    write(file, lines, {withSuggestion = false} = {}) {
      if (!isWritable) return announce('Your draft belongs to another attempt.');
      if (!file?.lines || lines.line === null) return announce('Choose lines of a file first.');
      const suggestion = withSuggestion ? textOf(file, lines.line, lines.end) : null;
      const {composer} = draft.content;
      const written = composer?.file === file.path ? composer : null;
      compose({
        key: written?.key ?? null,
        file: file.path,
        line: lines.line,
        end_line: lines.end,
        text: written?.text ?? '',
        must: written?.must ?? true,
        suggestion: suggestion ?? written?.suggestion ?? null,
      });
    },
    contentOf(path) {
      const file = list.find(({path: name}) => name === path);
      return file && layoutOf(work, file).content;
    },
    onPointer: dragging(() => {
      const picked = selection();
      const file = list.find(({path: name}) => name === picked?.path);
      if (file) work.write(layoutOf(work, file).content, picked);
    }),
    actionsOf: (comment) => ({
      edit: () => compose({...comment}),
      remove: () => change({comments: draft.content.comments.filter(({key}) => key !== comment.key)}),
    }),
    actionsOfComposer: (file) => ({
      lastLine: file.lines?.length ?? 1,
      linesOf: (line, end) => textOf(file, line, end),
      change: (changes) => change({composer: {...draft.content.composer, ...changes}}),
      cancel() {
        const {composer} = draft.content;
        change({composer: null});
        leave(composer);
      },
      done() {
        const {composer} = draft.content;
        const comments = withComposed(draft.content, file);
        if (!comments) return announce('The comment says nothing yet.');
        change({composer: null, comments});
        leave(composer);
        announce('Added to the review.');
      },
    }),
    async resolve(comment) {
      const isDone = await carryOut(busyKey, `${path}/resolve`, {comment: comment.id});
      if (!isDone) tellDone(note(busyKey).error.message);
    },
  };
  return work;
}

function onceDrawn(action) {
  requestAnimationFrame(() => requestAnimationFrame(action));
}

function textOf(file, line, end) {
  return file.lines.slice(line - 1, end).join('\n');
}

function head(piece) {
  const {waiting} = piece;
  return html`<header class="head">
    <div>
      <h1 tabindex="-1">${piece.name}</h1>
      <p class="meta">
        ${pill(waiting ? 'waits' : piece.state, waiting ? 'Waits for a person' : undefined)}
        ${waiting?.since ? html`<span class="quiet">since ${time(waiting.since, {focusable: true, age: true})}</span>` : nothing}
        ${waiting?.overdue ? html`<span class="mini tone-warn">overdue</span>` : nothing}
        <span class="quiet cut">${piece.workflow}</span><code class="cut">${piece.step}</code>
      </p>
      ${piece.goal ? html`<p class="prose quiet">${piece.goal}</p>` : nothing}
    </div>
  </header>`;
}

function nothingYet({state}) {
  if (state !== 'done') return empty({shape: 'file', title: 'Nothing was reported for this step yet.'});
  return empty({
    shape: 'file',
    title: 'This step was not judged.',
    text: 'Its outputs are on the page of its session.',
  });
}

// A draft belongs to the attempt that it was written about, also when the agent has reported again meanwhile.
function banner(work, draft, piece, query) {
  const {attempt, newest} = work;
  const written = draft.content.attempt;
  if (written === null || (written === newest && attempt === newest)) return nothing;
  if (attempt !== written)
    return html`<div class="notice tone-run" role="status">
      ${icon('messages')}
      <div>
        <p>You have a draft on attempt ${written}.</p>
        <p class="actions">
          <a class="button small" href=${withQuery({attempt: written, against: ''})}>Show it</a>
        </p>
      </div>
    </div>`;
  if (written === newest) return nothing;
  return html`<div class="notice tone-warn" role="status">
    ${icon('alert')}
    <div>
      <p><b>Attempt ${newest} is here.</b> What you are writing stays on attempt ${written}.</p>
      <p class="actions">
        <button type="button" class="button small" @click=${() => carry(work, draft)}>
          Take my draft along to attempt ${newest}
        </button>
        <a class="button small" href=${withQuery({attempt: newest, against: written})}>Only look at it</a>
        ${query.get('attempt') ? nothing : html`<button type="button" class="button small" @click=${() => draft.clear()}>Drop my draft</button>`}
      </p>
    </div>
  </div>`;
}

async function carry(work, draft) {
  const parameters = {attempt: work.newest, against: work.attempt};
  try {
    const {files} = await read(apiPath(['sessions', work.session, 'steps', work.step, 'files'], parameters));
    const {composer, comments} = draft.content;
    const all = composer && withComposed(draft.content, work.contentOf(composer.file));
    const content = carried({...draft.content, comments: all || comments}, files, work.newest);
    draft.change(content, work.newest);
    setQuery({attempt: '', against: ''});
  } catch (error) {
    tellDone(error.message);
  }
}

// The comments of a draft with the one that is being written, in a file that has these lines; null if it says nothing.
function withComposed({composer, comments}, file) {
  const {key, ...written} = composer;
  const quoted = file?.lines ? textOf(file, written.line, written.end_line) : '';
  const isSame = quoted !== '' && written.suggestion === quoted;
  const kept = {...written, text: written.text.trim(), quoted, suggestion: isSame ? null : written.suggestion};
  if (!kept.text && kept.suggestion === null) return null;
  return [...comments.filter((comment) => comment.key !== key), {...kept, key: key ?? Date.now()}];
}

function attempts(piece, chosen, data, query) {
  const before = piece.attempts.filter(({number}) => number < chosen.number);
  const against = String(data?.against ?? 'none');
  const options = [
    ...before.map(({number}) => [String(number), `attempt ${number}`]).reverse(),
    ...(piece.begun ? [['begun', 'what it began with']] : []),
    ['none', 'nothing'],
  ];
  return html`<div class="attempts-bar">
    <nav class="attempt-tabs" aria-label="Attempts">
      ${piece.attempts.map(({number, result, at}) => {
        const [status, text] = RESULTS[result] ?? ['pending', words(result)];
        return html`<a
          href=${withQuery({attempt: number, against: ''})}
          aria-current=${number === chosen.number ? 'page' : nothing}
          >${statusIcon(status)}<span><b>Attempt ${number}</b> <span class="quiet">${text}</span></span
          >${number === chosen.number ? time(at) : nothing}</a
        >`;
      })}
    </nav>
    ${
      options.length > 1
        ? html`<label class="against"
            >Compared with
            <select @change=${(event) => setQuery({attempt: query.get('attempt') ?? '', against: event.target.value})}>
              ${options.map(([value, text]) => html`<option value=${value} ?selected=${value === against}>${text}</option>`)}
            </select>
          </label>`
        : nothing
    }
  </div>`;
}

function fileList(work, files) {
  const counts = Map.groupBy(
    [...work.comments.filter(({state}) => state !== 'resolved'), ...work.draft.comments],
    ({file}) => file,
  );
  const list = html`<ul class="side-files">
    ${files.map((file) => {
      const said = counts.get(file.path)?.length;
      return html`<li>
        <button type="button" @click=${() => showFile(file.path)}>
          <span class="cut" title=${file.path}>${visible(file.path)}</span>
          ${said ? html`<span class="badge" aria-label=${countOf(said, 'comment')}>${said}</span>` : nothing}
          ${sizeMark(file)}
        </button>
      </li>`;
    })}
  </ul>`;
  return sidePart('Files', files.length, list);
}

function sidePart(title, count, content, {isOpen = !isNarrow.matches} = {}) {
  if (!count) return nothing;
  return html`<details class="fold side-part" ?open=${isOpen}>
    <summary>${title} <span class="count">${count}</span></summary>
    ${content}
  </details>`;
}

function criteria(attempt) {
  const questions = Object.entries(attempt.criteria).map(([name, question]) => [name, question, 'quiet']);
  return sidePart('Criteria', questions.length, facts(questions, 'side-criteria'));
}

function verdicts({reviewers}) {
  const list = html`<ul class="criteria">
    ${reviewers.map(
      ({runner, by, passed, feedback, findings}) =>
        html`<li>
          ${statusIcon(passed === null ? 'waits' : passed ? 'passed' : 'failed')}
          <div>
            <p>
              <b>${by ?? runner}</b
              >${findings.length ? html` <span class="quiet">${countOf(findings.length, 'finding')}</span>` : nothing}
            </p>
            ${prose(feedback, {lines: 3})}
          </div>
        </li>`,
    )}
  </ul>`;
  return sidePart('Reviewers', reviewers.length, list);
}

// What the work builds on.
function beside(piece) {
  const list = html`<ul class="plain">
    ${piece.inputs.map(({path}) => fileItem({...piece, path, attempt: piece.attempts.at(-1)?.number}))}
  </ul>`;
  return sidePart('Inputs', piece.inputs.length, list, {isOpen: false});
}

// Comments on files that this attempt does not have.
function withoutPlace(work, files) {
  const paths = new Set(files.map(({path}) => path));
  const loose = work.comments.filter(({file, state}) => !paths.has(file) && state !== 'resolved');
  return loose.length && files.length
    ? html`<section class="file-card" aria-label="Comments on other files">
        <header class="file-head"><b>Comments on files that are not in this attempt</b></header>
        ${loose.map(
          (comment) =>
            html`<div class="said">
              <p class="path quiet">${visible(comment.file)}</p>
              ${commentCard(comment, work)}
            </div>`,
        )}
      </section>`
    : nothing;
}
