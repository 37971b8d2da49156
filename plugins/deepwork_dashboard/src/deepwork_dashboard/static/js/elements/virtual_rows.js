// A list of thousands of rows of one height, of which only those in sight are in the document.

import {html, render} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';

const MARGIN_ROWS = 12;

export class VirtualRows extends HTMLElement {
  #rows = [];
  #scheduled = false;
  #onScroll = () => this.#schedule();

  // How many pixels a row is high.
  rowHeight = 44;
  // Gives the content of a row: `row(item, index)`.
  /** @type {(item: any, index: number) => unknown} */
  row = () => html``;
  // Called when the end of the list comes into sight.
  onend = () => {};

  get rows() {
    return this.#rows;
  }

  set rows(rows) {
    this.#rows = rows;
    this.#schedule();
  }

  connectedCallback() {
    addEventListener('scroll', this.#onScroll, {passive: true, capture: true});
    addEventListener('resize', this.#onScroll);
    this.#draw();
  }

  disconnectedCallback() {
    removeEventListener('scroll', this.#onScroll, {capture: true});
    removeEventListener('resize', this.#onScroll);
  }

  // Bring the next (1) or the row before (-1) into sight and focus it. False: there is none.
  step(direction) {
    /** @type {HTMLElement | null} */
    const focused = document.activeElement?.closest('[data-index]');
    const index = focused && this.contains(focused) ? Number(focused.dataset.index) + direction : this.#first();
    if (index < 0 || index >= this.#rows.length) return false;
    const top = this.getBoundingClientRect().top + scrollY + index * this.rowHeight;
    const room = innerHeight - this.rowHeight * 2;
    if (top < scrollY + this.rowHeight * 2) scrollTo({top: top - this.rowHeight * 2});
    else if (top > scrollY + room) scrollTo({top: top - room});
    this.#draw();
    /** @type {HTMLElement | null} */
    const link = this.querySelector(`[data-index="${index}"] a, [data-index="${index}"] button`);
    link?.focus({preventScroll: true});
    return true;
  }

  #first() {
    return Math.max(0, Math.min(this.#rows.length - 1, Math.ceil(-this.getBoundingClientRect().top / this.rowHeight)));
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      if (this.isConnected) this.#draw();
    });
  }

  #draw() {
    const above = -this.getBoundingClientRect().top / this.rowHeight;
    const from = Math.max(0, Math.min(this.#rows.length, Math.floor(above) - MARGIN_ROWS));
    const to = Math.min(this.#rows.length, Math.ceil(above + innerHeight / this.rowHeight) + MARGIN_ROWS);
    const shown = this.#rows.slice(from, to).map((item, position) => ({item, index: from + position}));
    this.style.height = `${this.#rows.length * this.rowHeight}px`;
    render(
      repeat(
        shown,
        ({item}) => item.id,
        ({item, index}) =>
          html` <div
            class="vrow"
            role="row"
            aria-rowindex=${index + 2}
            data-index=${index}
            .style=${`top:${index * this.rowHeight}px;height:${this.rowHeight}px`}
          >
            ${this.row(item, index)}
          </div>`,
      ),
      this,
    );
    if (to > this.#rows.length - MARGIN_ROWS) this.onend();
  }
}

customElements.define('virtual-rows', VirtualRows);
