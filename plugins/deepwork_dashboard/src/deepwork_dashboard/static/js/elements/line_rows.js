// Some rows of a file, which are in the document only while they are near what is in sight.

import {html, nothing, render} from '../../vendor/lit-html/lit-html.js';
import {block, compared} from '../piece/text.js';

const MARGIN = '800px 0px';
const LINE_HEIGHT = 20;
// Pixels beside the text, and of one character of it: they only guess how high rows are that were not drawn yet.
const BESIDE = 110;
const CHARACTER = 7.3;

const watch = new IntersectionObserver(
  (entries) => {
    for (const {target, isIntersecting, boundingClientRect} of entries)
      /** @type {LineRows} */ (target).come(isIntersecting, boundingClientRect);
  },
  {rootMargin: MARGIN},
);
let columns = Math.max(20, (Math.min(innerWidth, 1200) - BESIDE) / CHARACTER);

export class LineRows extends HTMLElement {
  #rows = [];
  #from = 0;
  #to = -1;
  #isNear = false;
  #height = 0;

  get rows() {
    return this.#rows;
  }

  // The same rows as before need no drawing: a row never changes.
  set rows(rows) {
    if (rows.length === this.#rows.length && rows[0] === this.#rows[0] && rows.at(-1) === this.#rows.at(-1)) return;
    this.#rows = rows;
    this.#height = 0;
    this.#draw();
  }

  // The lines that are chosen: `[from, to]`, or null.
  set chosen(lines) {
    const [from, to] = lines ?? [0, -1];
    if (from === this.#from && to === this.#to) return;
    [this.#from, this.#to] = [from, to];
    this.#draw();
  }

  connectedCallback() {
    watch.observe(this);
    this.#draw();
  }

  disconnectedCallback() {
    watch.unobserve(this);
  }

  // It has come near, or has left.
  come(isNear, {width, height}) {
    if (width) columns = Math.max(20, (width - BESIDE) / CHARACTER);
    if (isNear === this.#isNear || (!isNear && this.contains(document.activeElement))) return;
    if (!isNear) this.#height = height;
    this.#isNear = isNear;
    this.#draw();
  }

  // Bring a row into sight, and focus it.
  show(index) {
    this.#isNear = true;
    this.#draw();
    /** @type {HTMLElement | null} */
    const row = this.querySelector(`[data-index="${index}"]`);
    row?.focus({preventScroll: true});
    row?.scrollIntoView({block: 'nearest'});
  }

  #draw() {
    if (!this.isConnected) return;
    this.style.height = this.#isNear ? '' : `${this.#height || this.#guess()}px`;
    render(this.#isNear ? this.#rows.map((row) => this.#row(row)) : nothing, this);
  }

  #guess() {
    const count = this.#rows.reduce(
      (sum, {text}) => sum + Math.max(1, Math.ceil((text?.length ?? columns) / columns)),
      0,
    );
    return count * LINE_HEIGHT;
  }

  #row(row) {
    const isChosen = row.line !== null && row.line >= this.#from && row.from <= this.#to;
    return html`<div
      class="line is-${row.kind}${isChosen ? ' is-chosen' : ''}"
      role="row"
      tabindex="-1"
      aria-selected=${String(isChosen)}
      data-index=${row.index}
      data-from=${row.from ?? nothing}
      data-line=${row.line ?? nothing}
    >
      ${
        row.kind === 'block'
          ? html`<span class="ln new" role="gridcell">${row.from}</span>
              <div class="doc" role="gridcell">${block(row.block)}</div>`
          : html`<span class="ln old" role="gridcell">${row.old}</span
              ><span class="ln new" role="gridcell">${row.line}</span
              ><span class="sign" role="gridcell">${SIGNS[row.kind]}</span
              ><code role="gridcell">${compared(row.text, row.other)}</code>`
      }
    </div>`;
  }
}

const SIGNS = {added: '+', removed: '−', same: ''};

customElements.define('line-rows', LineRows);
