// A file that a step of a session has reported: its path, and what it holds once somebody wants to see it.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {apiPath} from './api.js';
import {bytes} from './format.js';
import {icon} from './icons.js';
import {note, setNote} from './page.js';
import {shown} from './parts.js';
import {use} from './resources.js';

const NO_PREVIEW = {
  binary: 'This file is not text.',
  large: 'This file is too large to be shown here.',
  missing: 'This file is not there any more.',
};

export function fileItem({session, step, path}) {
  const key = `preview ${session} ${step} ${path}`;
  const isOpen = note(key, false);
  return html`<li>
    <button
      type="button"
      class="file-link"
      aria-expanded=${String(isOpen)}
      @click=${() => setNote(key, isOpen ? undefined : true)}
    >
      ${icon('file')}<span class="path">${path}</span>${icon('chevron')}
    </button>
    ${isOpen ? preview(use(apiPath(['sessions', session, 'preview'], {step, path}))) : nothing}
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
        ${file.kind === 'text' ? html`<pre class="code" tabindex="0" aria-label=${`Content of ${file.path}`}>${file.text}</pre>` : html`<p class="quiet">${NO_PREVIEW[file.kind] ?? file.reason}</p>`}
      </div>`,
  );
}
