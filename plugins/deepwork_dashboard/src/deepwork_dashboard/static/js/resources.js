// What the pages have read of the JSON API, by path. A view says what it uses; what is not used any more is forgotten.

import {read, SignedOut} from './api.js';
import {redraw} from './page.js';

// Unused answers that are kept, so that going back shows something at once.
const KEPT = 8;
// A path that changes all the time is read this often at most, and less often the longer a read takes: a busy server has
// agents to answer. One that failed is tried again after a while.
const PAUSE_MS = 100;
const PAUSE_PER_READ = 2;
const RETRY_MS = 3000;
const LARGEST_PAGE = 500;

const resources = new Map();
let drawing = 0;

// One thing of the API. `data` stays what it was while it is read again, and when that fails.
class Resource {
  data = undefined;
  error = null;
  loading = false;
  changed = true;
  drawing = 0;
  #startedAt = -Infinity;
  #pause = PAUSE_MS;
  #timer = 0;

  constructor(path, isFixed = false) {
    this.path = path;
    this.isFixed = isFixed;
  }

  async fill() {
    this.data = await read(this.path);
  }

  start(pause = this.#pause) {
    if (this.loading || this.#timer) return;
    const wait = this.#startedAt + pause - performance.now();
    if (wait > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = 0;
        this.#read();
      }, wait);
    } else {
      this.#read();
    }
  }

  async #read() {
    this.loading = true;
    this.changed = false;
    this.#startedAt = performance.now();
    try {
      await this.fill();
      this.error = null;
    } catch (error) {
      if (!(error instanceof SignedOut)) this.error = error;
    }
    this.loading = false;
    this.#pause = Math.max(PAUSE_MS, (performance.now() - this.#startedAt) * PAUSE_PER_READ);
    if (this.error?.isTemporary && this.drawing === drawing) this.start(RETRY_MS);
    redraw();
  }

  forget() {
    clearTimeout(this.#timer);
  }
}

// A list of the API, of which more pages are read on demand.
class List extends Resource {
  items = [];
  next = null;
  total = null;
  // How many things there are besides, which no page of the list has.
  unlisted = 0;
  #wantsMore = false;

  constructor(path, pageSize, onlyGrows) {
    super(path);
    this.pageSize = pageSize;
    this.onlyGrows = onlyGrows;
  }

  more() {
    if (!this.next || this.#wantsMore) return;
    this.#wantsMore = true;
    this.start(0);
  }

  async fill() {
    try {
      if (this.#wantsMore) await this.#append();
      else if (this.onlyGrows && this.items.length) await this.#prepend();
      else await this.#readAgain();
    } finally {
      this.#wantsMore = false;
    }
    this.data = this.items;
  }

  async #append() {
    const answer = await this.#page(this.next, this.pageSize);
    const known = this.#ids();
    this.items = [...this.items, ...answer.items.filter((item) => !known.has(item.id))];
    this.next = answer.next;
    this.total = answer.total;
  }

  // Read from the newest on, until something is known.
  async #prepend() {
    const known = this.#ids();
    const fresh = [];
    let answer = {next: null};
    let unknown = [];
    do {
      answer = await this.#page(answer.next, this.pageSize);
      unknown = answer.items.filter((item) => !known.has(item.id));
      fresh.push(...unknown);
    } while (answer.next && unknown.length === answer.items.length);
    this.total = answer.total;
    if (fresh.length) this.items = [...fresh, ...this.items];
  }

  // Read as much again as there was.
  async #readAgain() {
    const wanted = Math.max(this.pageSize, this.items.length);
    const items = [];
    let answer = {next: null};
    do {
      answer = await this.#page(answer.next, Math.min(LARGEST_PAGE, wanted - items.length));
      items.push(...answer.items);
    } while (answer.next && items.length < wanted);
    this.items = items;
    this.next = answer.next;
    this.total = answer.total;
    this.problems = answer.problems ?? [];
    this.unlisted = answer.more ?? 0;
  }

  #page(cursor, limit) {
    const parameters = new URLSearchParams({limit, ...(cursor && {cursor})});
    return read(`${this.path}${this.path.includes('?') ? '&' : '?'}${parameters}`);
  }

  #ids() {
    return new Set(this.items.map((item) => item.id));
  }
}

// `isFixed`: it never changes, so it is read once.
export function use(path, {isFixed = false} = {}) {
  return touch(path, () => new Resource(path, isFixed));
}

// `onlyGrows`: items never change, so of a change only what is new is read.
export function useList(path, {pageSize = 100, onlyGrows = false} = {}) {
  return touch(`list ${path}`, () => new List(path, pageSize, onlyGrows));
}

function touch(key, make) {
  if (!resources.has(key)) resources.set(key, make());
  const resource = resources.get(key);
  resource.drawing = drawing;
  if (resource.changed) resource.start();
  return resource;
}

// Read again what fits: now if it is on the page, else at its next use.
export function invalidate(fits) {
  for (const resource of resources.values()) {
    if (!fits(resource.path, resource) || (resource.isFixed && resource.data && !resource.error)) continue;
    resource.changed = true;
    if (resource.drawing === drawing) resource.start();
  }
}

export function invalidateFailed() {
  invalidate((path, resource) => resource.error);
}

export function invalidateAll() {
  invalidate(() => true);
}

export function beginDrawing() {
  drawing += 1;
}

// Whether something that this drawing shows is being read for the first time.
export function isFilling() {
  return [...resources.values()].some(
    (resource) => resource.drawing === drawing && resource.data === undefined && !resource.error,
  );
}

export function endDrawing() {
  const unused = [...resources].filter(([, resource]) => resource.drawing !== drawing);
  for (const [key, resource] of unused.slice(0, Math.max(0, unused.length - KEPT))) {
    resource.forget();
    resources.delete(key);
  }
}
