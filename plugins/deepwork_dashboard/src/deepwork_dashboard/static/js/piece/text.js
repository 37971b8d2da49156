// Text of files as it is: what cannot be seen is shown, and what differs from another line is marked.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';

// Control and format characters change the direction of a text, or take no room: with them a line can look like another.
// Those that join the parts of letters and emoji are left alone.
const UNSEEN = /((?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}])/u;

export function visible(text) {
  if (!UNSEEN.test(text)) return text;
  return text.split(UNSEEN).map((part, index) => (index % 2 ? unseen(part) : part));
}

function unseen(character) {
  const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
  return html`<span class="unseen">U+${code}</span>`;
}

// A line with the part marked that differs from the line in whose place it stands.
export function compared(text, other) {
  if (other === undefined || text === other) return visible(text);
  const longest = Math.min(text.length, other.length);
  let start = 0;
  while (start < longest && text[start] === other[start]) start += 1;
  let end = 0;
  while (end < longest - start && text.at(-1 - end) === other.at(-1 - end)) end += 1;
  if (isHalf(text, start)) start -= 1;
  if (isHalf(text, text.length - end)) end -= 1;
  const middle = text.slice(start, text.length - end);
  if (!middle || start + end < longest / 3) return visible(text);
  return html`${visible(text.slice(0, start))}<span class="differs">${visible(middle)}</span
    >${visible(text.slice(text.length - end))}`;
}

// Whether a cut here would part the two halves of one character.
function isHalf(text, index) {
  return (text.charCodeAt(index) & 0xfc00) === 0xdc00;
}

// Markdown, CSV and JSON as the server has read them: a tree of tags that stand here, and texts. Nothing is a link.

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
