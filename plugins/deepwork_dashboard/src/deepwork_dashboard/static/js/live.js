// The connection by which the server tells what has changed. It resumes where it was cut, so nothing is missed.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {liveAddress, parseThing, readViewer} from './api.js';
import {clock} from './format.js';
import {icon} from './icons.js';
import {announce, redraw} from './page.js';
import {invalidate, invalidateAll, invalidateFailed} from './resources.js';

// The server says something every 15 s. Whoever hears nothing for this long has lost it: a laptop was closed.
const SILENCE_MS = 40_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const LOGIN_AGAIN = 4401;

// `since` is when it was lost.
const connection = {state: 'connecting', since: null};

let socket = null;
let cursor = null;
let heardAt = 0;
let failures = 0;
let retry = 0;

export function startLive() {
  stopLive();
  failures = 0;
  connect();
}

export function stopLive() {
  clearTimeout(retry);
  retry = 0;
  const old = socket;
  socket = null;
  old?.close();
}

function connect() {
  clearTimeout(retry);
  retry = 0;
  const own = new WebSocket(liveAddress(cursor));
  socket = own;
  heardAt = Date.now();
  own.onmessage = (message) => own === socket && hear(JSON.parse(message.data));
  own.onclose = (event) => own === socket && lose(event.code);
}

function hear(message) {
  heardAt = Date.now();
  if (message.cursor) cursor = message.cursor;
  if (message.type === 'hello') greet(message.resumed);
  if (message.type === 'changes') apply(message.things);
}

function greet(resumed) {
  if (connection.state === 'lost') announce('Connected again. The page is up to date.');
  failures = 0;
  connection.state = 'live';
  connection.since = null;
  if (resumed) invalidateFailed();
  else invalidateAll();
  redraw();
}

function lose(code) {
  socket = null;
  if (connection.state !== 'lost') {
    if (connection.state === 'live') announce('The connection is lost. The page shows what was known before.');
    connection.state = 'lost';
    connection.since = Date.now();
  }
  redraw();
  if (code === LOGIN_AGAIN) readViewer().catch(() => {});
  else retry = setTimeout(reconnect, wait());
}

function wait() {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
  failures += 1;
  return longest * (0.5 + Math.random() / 2);
}

// A refused WebSocket does not say why, so a plain request asks first whether we are still logged in.
async function reconnect() {
  try {
    await readViewer();
  } catch (error) {
    if (error.status !== 401) retry = setTimeout(reconnect, wait());
    return;
  }
  connect();
}

// Try at once instead of waiting on: the person, or the system, says that there is a network again.
function reconnectNow() {
  if (connection.state !== 'lost' || !retry) return;
  clearTimeout(retry);
  retry = 0;
  failures = 0;
  reconnect();
}

function checkSilence() {
  if (socket && Date.now() - heardAt > SILENCE_MS) {
    const silent = socket;
    silent.onclose = null;
    silent.close();
    lose(1006);
    reconnectNow();
  }
}

setInterval(checkSilence, 5000);
addEventListener('online', reconnectNow);
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState !== 'visible') return;
  checkSilence();
  reconnectNow();
});

// Of these lists the things are told besides, one by one.
const TOLD_ONE_BY_ONE = ['sessions', 'plans', 'work'];

function apply(things) {
  const prefixes = things.flatMap(shownBy);
  invalidate((path) => prefixes.some((prefix) => covers(prefix, path)));
}

// The paths of the API that show a thing, or a list.
function shownBy(thing) {
  const {kind, id, page} = parseThing(thing);
  if (id) return page ? [`api/${page}/${encodeURIComponent(id)}`] : [];
  return [TOLD_ONE_BY_ONE.includes(kind) ? `api/${kind}?` : `api/${kind}`, 'api/overview'];
}

// `api/sessions?` is the list with any parameters; `api/sessions/1` is that session and what is below it, and not
// `api/sessions/12`.
function covers(prefix, path) {
  const [start, query] = path.split('?', 2);
  if (prefix.endsWith('?')) return start === prefix.slice(0, -1);
  return start === prefix || start.startsWith(`${prefix}/`) || (query !== undefined && path === prefix);
}

// What is shown of it: a mark beside the search, and a notice while what is shown may be old.

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
