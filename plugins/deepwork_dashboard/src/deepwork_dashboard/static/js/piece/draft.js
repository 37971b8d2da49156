// What a person writes about a piece of work before it is sent. The server keeps it; until it has, the browser does.

import {act} from '../api.js';
import {redraw} from '../page.js';

const PAUSE_MS = 400;
const RETRY_MS = 3000;
const EMPTY = {attempt: null, text: '', comments: [], composer: null};

const drafts = new Map();
// People may share a login: the server keeps the draft of whoever has begun first, and browsers those of the others.
const THIS_PAGE = String(Math.random());

class Draft {
  #timer = 0;
  #isSaving = false;
  #writers; // the pages that have written what this one goes on from, and this one

  constructor(path, piece) {
    this.path = path;
    const unsaved = this.#unsaved();
    const {writer, writers = [writer], ...content} = unsaved ?? piece.draft ?? {};
    this.#writers = [...writers, THIS_PAGE];
    this.content = withoutSent({...EMPTY, ...content}, piece);
    this.state = 'saved';
    if (unsaved) this.#later(0);
  }

  get isEmpty() {
    const {text, comments, composer} = this.content;
    return !text && !comments.length && !composer;
  }

  // Change a part. The draft belongs to the attempt that was looked at when it began.
  change(changes, attempt) {
    this.content = {...this.content, attempt: this.content.attempt ?? attempt, ...changes};
    if (this.isEmpty) this.content.attempt = null;
    this.#keep(JSON.stringify({...this.content, writers: this.#writers}));
    this.#later(PAUSE_MS);
    redraw();
  }

  clear() {
    this.change(EMPTY, null);
  }

  // It has been sent.
  drop() {
    this.content = EMPTY;
    this.#keep(JSON.stringify({...EMPTY, writers: this.#writers}));
    this.#later(0);
    redraw();
  }

  #later(wait) {
    this.state = 'saving';
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#save(), wait);
  }

  async #save() {
    if (this.#isSaving) return this.#later(PAUSE_MS);
    this.#isSaving = true;
    const sent = this.content;
    try {
      await act(`${this.path}/draft`, {
        draft: this.isEmpty ? null : {...sent, writer: THIS_PAGE},
        writers: this.#writers,
      });
      if (sent === this.content) {
        this.state = 'saved';
        this.#keep(null);
      }
    } catch (error) {
      this.state = 'unsaved';
      this.problem = error.message;
      if (error.isTemporary || error.status === 401) this.#timer = setTimeout(() => this.#save(), RETRY_MS);
    }
    this.#isSaving = false;
    redraw();
  }

  #keep(text) {
    try {
      if (text === null) localStorage.removeItem(this.#key);
      else localStorage.setItem(this.#key, text);
    } catch {
      // storage may be forbidden, or full: then the server's copy has to do
    }
  }

  #unsaved() {
    try {
      return JSON.parse(localStorage.getItem(this.#key));
    } catch {
      return null;
    }
  }

  get #key() {
    return `deepwork.draft ${this.path}`;
  }
}

export function draftOf(path, piece) {
  if (!drafts.has(path)) drafts.set(path, new Draft(path, piece));
  return drafts.get(path);
}

// A page that died just after it had sent its draft still has it.
function withoutSent(content, piece) {
  const {attempt, text, comments} = content;
  const isSent = ({file, line, end_line: end, text: words}) =>
    piece.comments.some(
      (sent) =>
        sent.attempt === attempt &&
        sent.file === file &&
        sent.line === line &&
        sent.end_line === end &&
        sent.text === words,
    );
  const judged = piece.attempts.find(({number}) => number === attempt)?.reviewers ?? [];
  const left = {
    ...content,
    text: judged.some(({by, feedback}) => by && feedback === text.trim()) ? '' : text,
    comments: comments.filter((comment) => !isSent(comment)),
  };
  return left.text || left.comments.length || left.composer ? left : EMPTY;
}

// The comments of a draft on the lines of another attempt: `changes` lead there from the attempt of the draft. What was
// written about lines that are gone keeps its words, and loses its place.
export function carried({text, comments}, files, attempt) {
  const kept = [];
  let words = text;
  for (const comment of comments) {
    const shift = shiftOf(files.find(({path}) => path === comment.file)?.changes, comment);
    if (shift === null) words = `${words}\n${comment.file}: ${comment.text}`.trim();
    else kept.push({...comment, line: comment.line + shift, end_line: comment.end_line + shift});
  }
  return {attempt, text: words, comments: kept, composer: null};
}

function shiftOf(changes, {line, end_line: end}) {
  let shift = 0;
  for (const [old, removed, , added] of changes ?? []) {
    if (old > end) break;
    if (old + removed.length > line || (removed.length === 0 && old > line)) return null;
    shift += added - removed.length;
  }
  return changes ? shift : null;
}
