// What is shown of the connection: a mark beside the search, and a notice while what is shown may be old.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {clock} from './format.js';
import {icon} from './icons.js';
import {connection, reconnectNow, startLive, stopLive} from './live.js';

export {startLive, stopLive};

const WORDS = {live: 'Live', connecting: 'Connecting', lost: 'Reconnecting'};

export function connectionMark() {
  return html`<span class="connection is-${connection.state}" title=${WORDS[connection.state]}>
    <span class="connection-dot"></span><span class="connection-word">${WORDS[connection.state]}</span></span
  >`;
}

export function staleNotice() {
  if (connection.state !== 'lost') return nothing;
  return html`<div class="stale" role="note">
    ${icon('alert')}<span>Not connected since ${clock(connection.since)}. What you see may be old.</span>
    <button type="button" class="button small" @click=${reconnectNow}>Try now</button>
  </div>`;
}
