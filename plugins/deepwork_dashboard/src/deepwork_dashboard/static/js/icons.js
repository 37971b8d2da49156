// Icons of 16 px, drawn with the colour of the text around them.

import {html, svg} from '../vendor/lit-html/lit-html.js';

const SHAPES = {
  inbox: svg`<path d="M2 9.5h3.2l1 2h3.6l1-2H14"/><path d="M4.2 3h7.6L14 9.5V13H2V9.5z"/>`,
  overview: svg`<path d="M1.5 8.5h3l2-5.5 3 10 2-4.5h3"/>`,
  run: svg`<circle cx="8" cy="8" r="6.2"/><path d="M6.6 5.5 10.4 8l-3.8 2.5z"/>`,
  plan: svg`<rect x="1.8" y="6" width="4" height="4" rx="1"/><rect x="10.2" y="1.8" width="4" height="4" rx="1"/><rect x="10.2" y="10.2" width="4" height="4" rx="1"/><path d="M5.8 8h2.2m2.2-4.2H9.4A1.4 1.4 0 0 0 8 5.2v5.6a1.4 1.4 0 0 0 1.4 1.4h.8"/>`,
  tracked: svg`<path d="M4 2.5v11"/><circle cx="4" cy="4" r="1.7"/><circle cx="4" cy="12" r="1.7"/><path d="M8 4h6M8 8h6M8 12h6"/>`,
  agents: svg`<circle cx="6" cy="5.4" r="2.6"/><path d="M1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4"/><path d="M10.6 3a2.5 2.5 0 0 1 0 4.8M12.2 9.9c1.5.6 2.3 1.9 2.3 3.6"/>`,
  messages: svg`<path d="M2 3h12v8.5H7L4 14v-2.5H2z"/>`,
  reviews: svg`<path d="M8 1.8 13.5 4v4c0 3.2-2.3 5.3-5.5 6.3C4.8 13.3 2.5 11.2 2.5 8V4z"/><path d="m5.6 8 1.7 1.7 3.1-3.3"/>`,
  events: svg`<path d="M2 4h12M2 8h12M2 12h7"/>`,
  search: svg`<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/>`,
  check: svg`<path d="m3 8.5 3.2 3.2L13 4.8"/>`,
  cross: svg`<path d="m4 4 8 8m0-8-8 8"/>`,
  clock: svg`<circle cx="8" cy="8" r="6.2"/><path d="M8 4.5V8l2.4 1.6"/>`,
  alert: svg`<path d="M8 2 14.5 13.5h-13z"/><path d="M8 6.5v3.2M8 11.7v.1"/>`,
  hand: svg`<path d="M5 8.5V3.8a1 1 0 0 1 2 0V7m0-4.2a1 1 0 0 1 2 0V7m0-3.2a1 1 0 0 1 2 0V8m0-2.2a1 1 0 0 1 2 0v4.5c0 2.3-1.7 4-4 4-2 0-3-.9-4-2.6L3.2 9.3c-.5-.9.7-1.7 1.4-1z"/>`,
  dot: svg`<circle cx="8" cy="8" r="3" fill="currentColor" stroke="none"/>`,
  circle: svg`<circle cx="8" cy="8" r="5.5"/>`,
  spin: svg`<path d="M8 1.8A6.2 6.2 0 1 1 1.8 8"/>`,
  pause: svg`<path d="M5.5 3.5v9m5-9v9"/>`,
  skip: svg`<path d="m3.5 3.5 6 4.5-6 4.5zM12.5 3.5v9"/>`,
  lock: svg`<rect x="3" y="7" width="10" height="7" rx="1.5"/><path d="M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2"/>`,
  file: svg`<path d="M4 1.8h5L12.5 5.3v8.9H4z"/><path d="M9 1.8v3.5h3.5"/>`,
  copy: svg`<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M3.5 10.5h-.3A1.2 1.2 0 0 1 2 9.3V3.2A1.2 1.2 0 0 1 3.2 2h6.1a1.2 1.2 0 0 1 1.2 1.2v.3"/>`,
  chevron: svg`<path d="m6 3.5 4.5 4.5L6 12.5"/>`,
  menu: svg`<path d="M2 4h12M2 8h12M2 12h12"/>`,
  sun: svg`<circle cx="8" cy="8" r="2.8"/><path d="M8 1.5v1.6m0 9.8v1.6M1.5 8h1.6m9.8 0h1.6M3.4 3.4l1.1 1.1m7 7 1.1 1.1m0-9.2-1.1 1.1m-7 7-1.1 1.1"/>`,
  moon: svg`<path d="M13.5 9.8A5.8 5.8 0 0 1 6.2 2.5a5.8 5.8 0 1 0 7.3 7.3z"/>`,
  system: svg`<rect x="2" y="2.5" width="12" height="8.5" rx="1.2"/><path d="M5.5 14h5M8 11v3"/>`,
  keyboard: svg`<rect x="1.5" y="4" width="13" height="8.5" rx="1.5"/><path d="M4 6.8h.1m2.6 0h.1m2.5 0h.1m2.5 0h.1M5 9.8h6"/>`,
  plus: svg`<path d="M8 3v10M3 8h10"/>`,
  minus: svg`<path d="M3 8h10"/>`,
  fit: svg`<path d="M2.5 5.5v-3h3m5 0h3v3m0 5v3h-3m-5 0h-3v-3"/>`,
  flag: svg`<path d="M3.5 14V2.5h8.5l-2 3 2 3H3.5"/>`,
  decision: svg`<path d="M8 14V9m0 0L3.5 4.5M8 9l4.5-4.5M3.5 7.5v-3h3m6 3v-3h-3"/>`,
};

export function icon(name, label = '') {
  return label
    ? html`<svg class="icon icon-${name}" viewBox="0 0 16 16" role="img" aria-label=${label}>${SHAPES[name]}</svg>`
    : html`<svg class="icon icon-${name}" viewBox="0 0 16 16" aria-hidden="true">${SHAPES[name]}</svg>`;
}
