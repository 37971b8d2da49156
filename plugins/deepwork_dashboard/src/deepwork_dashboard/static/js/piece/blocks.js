// Markdown, CSV and JSON as the server has read them: a tree of tags that stand here, and texts. Nothing is a link.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {visible} from './text.js';

const TAGS = {
  p: (parts) => html`<p>${parts}</p>`,
  h1: (parts) => html`<p class="doc-1">${parts}</p>`,
  h2: (parts) => html`<p class="doc-2">${parts}</p>`,
  b: (parts) => html`<b>${parts}</b>`,
  i: (parts) => html`<i>${parts}</i>`,
  s: (parts) => html`<s>${parts}</s>`,
  code: (parts) => html`<code>${parts}</code>`,
  pre: (parts) => html`<pre>${parts}</pre>`,
  quote: (parts) => html`<blockquote>${parts}</blockquote>`,
  ul: (parts) =>
    html`<ul>
      ${parts}
    </ul>`,
  ol: (parts) =>
    html`<ol>
      ${parts}
    </ol>`,
  li: (parts) => html`<li>${parts}</li>`,
  br: () => html`<br />`,
  hr: () => html`<hr />`,
  item: (parts, {mark}) =>
    html`<div class="doc-item">
      <span>${mark}</span>
      <div>${parts}</div>
    </div>`,
  link: (parts, {to}) => html`${parts} <code class="quiet">${visible(to)}</code>`,
  image: (parts, {to}) => html`<span class="mini">image</span> ${parts} <code class="quiet">${visible(to)}</code>`,
};

export function block(part) {
  if (typeof part === 'string') return visible(part);
  if (part.tag === 'row') return row(part);
  const draw = TAGS[part.tag] ?? (/^h\d$/.test(part.tag) ? heading : TAGS.p);
  return draw((part.parts ?? []).map(block), part);
}

function heading(parts) {
  return html`<p class="doc-3">${parts}</p>`;
}

// The rows of a table stand one below the other, each with cells of the same width.
function row({cells, head}) {
  return html`<div class=${head ? 'doc-row is-head' : 'doc-row'} .style=${`--cells:${cells.length || 1}`}>
    ${cells.length ? cells.map((parts) => html`<span>${parts.map(block)}</span>`) : nothing}
  </div>`;
}
