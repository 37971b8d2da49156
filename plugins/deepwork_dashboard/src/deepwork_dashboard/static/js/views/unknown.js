import {html} from '../../vendor/lit-html/lit-html.js';
import {empty} from '../parts.js';

export function unknownView() {
  return html`<h1 tabindex="-1">Nothing here</h1>
    ${empty({shape: 'search', title: 'This address names no view.', text: 'The view may belong to a plugin that is not installed. These are:', command: 'deepwork plugins'})}
    <p class="centred"><a href="#/inbox">To the inbox</a></p>`;
}
