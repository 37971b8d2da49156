// A file that a step of a session has reported: its path, and what it holds once somebody wants to see it.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {apiPath} from './api.js';
import {bytes} from './format.js';
import {icon} from './icons.js';
import {note, setNote} from './page.js';
import {shown} from './parts.js';
import {visible} from './piece/text.js';
import {use} from './resources.js';

const NO_PREVIEW = {
  binary: 'This file is not text.',
  large: 'This file is too large to be shown here.',
  missing: 'This file is not there any more.',
  closed: 'It looks as if it held secrets, and stays closed.',
  unkept: 'Its content is not kept.',
  elsewhere: 'Its content is kept on another machine.',
};

// `attempt`: as it was then judged, or what the step builds on; else as the step has reported it.
export function fileItem({session, step, path, attempt = null}) {
  const key = `preview ${session} ${step} ${path} ${attempt}`;
  const isOpen = note(key, false);
  const parameters = {step, path, ...(attempt !== null && {attempt, against: 'none'})};
  return html`<li>
    <button
      type="button"
      class="file-link"
      aria-expanded=${String(isOpen)}
      @click=${() => setNote(key, isOpen ? undefined : true)}
    >
      ${icon('file')}<span class="path">${visible(path)}</span>${icon('chevron')}
    </button>
    ${isOpen ? preview(use(apiPath(['sessions', session, 'preview'], parameters))) : nothing}
  </li>`;
}

function preview(resource) {
  return shown(
    resource,
    (file) =>
      html`<div class="preview">
        <p class="review-meta">
          <span class="quiet">${file.size === null || file.size === undefined ? '' : bytes(file.size)}</span>
          ${file.changed ? html`<span class="mini tone-warn">changed since it was reported</span>` : nothing}${file.truncated ? html`<span class="mini">only its beginning</span>` : nothing}
        </p>
        ${
          file.lines || file.kind === 'text'
            ? html`<pre class="code" tabindex="0" aria-label=${`Content of ${file.path}`}>
${visible(file.lines?.join('\n') ?? file.text)}</pre>`
            : html`<p class="quiet">${NO_PREVIEW[file.closed ? 'closed' : (file.note ?? file.kind)] ?? file.reason}</p>`
        }
      </div>`,
  );
}
