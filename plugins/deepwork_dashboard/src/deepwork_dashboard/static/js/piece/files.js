// The files of an attempt: each with its lines or as it is rendered, and below the lines what was said of them.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';
import {apiPath} from '../api.js';
import '../elements/line_rows.js';
import {bytes} from '../format.js';
import {icon} from '../icons.js';
import {note, setNote} from '../page.js';
import {shown} from '../parts.js';
import {use} from '../resources.js';
import {partsOf, rowsOf, sizeOf} from './rows.js';
import {selection} from './selection.js';
import {visible} from './text.js';
import {commentCard, composer, draftCard, findingCard} from './threads.js';

const NOTES = {
  large: 'too large to be shown here.',
  unkept: 'not kept: contents are kept for steps that a person reviews, or with quality_gate.keep.',
  elsewhere: 'kept on another machine',
  gone: 'not kept any more.',
  binary: 'not text.',
};
const FORM_NAMES = {markdown: 'Rendered', csv: 'Table', json: 'Table'};

// How a file is drawn now. `work` is what the page knows of the attempt that is shown.
export function layoutOf(work, file) {
  const key = (name) => `piece ${work.path} ${file.path} ${name}`;
  const opened = openedSecret(work, file, key('secret'));
  const content = opened?.data ?? file;
  const said = saidOf(work, file);
  const isOpen = note(key('open'), file.state !== 'same' || said.length > 0);
  const isRendered = Boolean(content.blocks) && note(key('rendered'), !content.changes);
  const layout = {key, opened, content, isOpen, isRendered, said, rows: [], parts: [], below: new Map()};
  if (!isOpen || !content.lines) return layout;
  const rows = rowsOf(content, isRendered);
  const below = placed(said, rows);
  const opening = {anchors: below, opened: note(key('gaps'), new Set()), isWhole: isRendered || !content.changes};
  return {...layout, rows, below, parts: partsOf(rows, opening)};
}

export function fileCard(work, file) {
  const layout = layoutOf(work, file);
  const {key, content, isOpen, isRendered} = layout;
  return html`<section class="file-card" data-file=${file.path} aria-label=${file.path}>
    <header class="file-head">
      <button
        type="button"
        class="file-name"
        aria-expanded=${String(isOpen)}
        @click=${() => setNote(key('open'), !isOpen)}
      >
        ${icon('chevron')}<span class="path">${visible(file.path)}</span>
      </button>
      <span class="quiet">${fileWords(file)}</span>
      ${sizeMark(content)}
      ${
        content.blocks && isOpen
          ? html`<button
              type="button"
              class="button small push"
              data-rendered
              aria-pressed=${String(isRendered)}
              @click=${() => setNote(key('rendered'), !isRendered)}
            >
              ${FORM_NAMES[file.kind]}
            </button>`
          : nothing
      }
    </header>
    ${isOpen ? body(work, layout) : nothing}
  </section>`;
}

export function sizeMark(file) {
  const {added, removed} = sizeOf(file);
  return added || removed
    ? html`<span class="plus-minus"
        ><span class="tone-good">+${added}</span> <span class="tone-bad">−${removed}</span></span
      >`
    : nothing;
}

const STATES = {added: 'new', removed: 'no longer reported', same: 'unchanged', changed: ''};

function fileWords({state, size, output}) {
  return [STATES[state], output, size === null || size === undefined ? '' : bytes(size)].filter(Boolean).join(' · ');
}

// What looks like secrets is read once somebody has asked for it.
function openedSecret(work, file, key) {
  if (!file.closed || !note(key)) return null;
  const parameters = {
    step: work.step,
    path: file.path,
    attempt: work.attempt,
    against: work.against ?? 'none',
    open: 'true',
  };
  return use(apiPath(['sessions', work.session, 'preview'], parameters), {isFixed: true});
}

function body(work, layout) {
  const {content: file, opened, key} = layout;
  if (opened && !opened.data) return html`<div class="file-note">${shown(opened, () => nothing)}</div>`;
  if (file.closed)
    return html`<div class="file-note">
      ${icon('lock')}<span>This file looks as if it held secrets.</span>
      <button type="button" class="button small" @click=${() => setNote(key('secret'), true)}>Show it</button>
    </div>`;
  if (file.image) return pictures(file);
  if (file.lines) return grid(work, layout);
  const kind = file.kind === 'binary' ? 'Binary' : file.kind === 'image' ? 'Image' : 'Text';
  return html`<p class="file-note quiet">
    ${icon('file')}<span
      >${kind},
      ${bytes(file.size ?? 0)}${NOTES[file.note] ? `: ${NOTES[file.note]}` : ''}${file.where ? ` (${file.where})` : ''}</span
    >
  </p>`;
}

function pictures({path, image, old_image: old}) {
  return html`<div class="pictures">
    ${
      old
        ? html`<figure>
            <img src=${old} alt="${path}, before" />
            <figcaption class="quiet">before</figcaption>
          </figure>`
        : nothing
    }
    <figure>
      <img src=${image} alt=${path} />
      ${old ? html`<figcaption class="quiet">now</figcaption>` : nothing}
    </figure>
  </div>`;
}

function grid(work, {content: file, isRendered, key, parts, below}) {
  const picked = selection();
  const chosen = picked?.path === file.path ? [picked.line, picked.end] : null;
  const gaps = note(key('gaps'), new Set());
  return html`${(below.get(null) ?? []).map(({draw}) => html`<div class="said">${draw()}</div>`)}
    <div
      class=${file.changes && !isRendered ? 'lines' : 'lines has-one-number'}
      role="grid"
      tabindex="0"
      aria-label="${file.path}: j and k go through its lines"
      aria-multiselectable="true"
      @pointerdown=${work.onPointer}
    >
      ${repeat(
        parts,
        ({kind, rows}) => `${kind} ${rows.at(-1).index} ${isRendered}`, // what is written below keeps its place
        (part) =>
          part.kind === 'gap'
            ? gap(part, () => setNote(key('gaps'), new Set([...gaps, part.index])))
            : html`<line-rows role="rowgroup" data-start=${part.index} .rows=${part.rows} .chosen=${chosen}></line-rows>
                ${(part.below ?? []).flatMap((line) => below.get(line)).map(said)}`,
      )}
    </div>
    ${file.truncated ? html`<p class="file-note quiet">Only the first ${file.lines.length} lines are shown.</p>` : nothing}`;
}

function said({draw}) {
  return html`<div class="said" role="row"><div role="gridcell">${draw()}</div></div>`;
}

function gap({rows}, open) {
  return html`<div class="gap" role="row">
    <div role="gridcell">
      <button type="button" @click=${open}>
        ${icon('chevron')}${rows.length} unchanged lines, ${rows[0].line}–${rows.at(-1).line}
      </button>
    </div>
  </div>`;
}

// What is said of a file, each with the line below which it stands; null for what has no place in this attempt.
function saidOf(work, file) {
  const {draft, attempt} = work;
  const entries = work.reviewers.flatMap(({runner, findings}) =>
    findings
      .filter((finding) => finding.file === file.path)
      .map((finding) => ({
        line: finding.end_line ?? finding.line,
        draw: () => findingCard({reviewer: runner, finding}),
      })),
  );
  for (const comment of work.comments) {
    const place = placeIn(comment, attempt);
    if (comment.file === file.path && (place || attempt === work.newest))
      entries.push({line: place && (place.end_line ?? place.line), draw: () => commentCard(comment, work)});
  }
  if (draft.attempt !== attempt) return entries;
  for (const comment of draft.comments)
    if (comment.file === file.path && comment.key !== draft.composer?.key)
      entries.push({line: comment.end_line, draw: () => draftCard(comment, work.actionsOf(comment))});
  if (draft.composer?.file === file.path)
    entries.push({line: draft.composer.end_line, draw: () => composer(draft.composer, work.actionsOfComposer(file))});
  return entries;
}

function placeIn(comment, attempt) {
  if (comment.attempt === attempt) return comment;
  return comment.place?.attempt === attempt ? comment.place : null;
}

// By the line below which it is drawn. What no row has stands above all of them.
function placed(entries, rows) {
  const known = new Set();
  for (const {from, line} of rows) for (let number = from; number && number <= line; number += 1) known.add(number);
  return Map.groupBy(entries, ({line}) => (known.has(line) ? line : null));
}
