// The page: who is logged in, which view the address names, and the frame around it.

import {html, nothing, render} from '../vendor/lit-html/lit-html.js';
import {keyed} from '../vendor/lit-html/directives/keyed.js';
import {doneNotice} from './acting.js';
import {login, logout, readViewer, whenSignedOut} from './api.js';
import {icon} from './icons.js';
import {helpDialog, openHelp, startKeys} from './keyboard.js';
import {connectionMark, staleNotice, startLive, stopLive} from './live.js';
import {announced, redraw, setDraw} from './page.js';
import {beginDrawing, endDrawing, invalidateAll, isFilling, useList} from './resources.js';
import {current, go, href, renameFormer} from './router.js';
import {signIn} from './sign_in.js';
import {applyTheme, setTheme, theme, THEMES} from './theme.js';
import {NAVIGATION, viewOf} from './views.js';

const TICK_MS = 10_000;
// Frames in which a heading is waited for.
const HEADING_ATTEMPTS = 120;

// Null until the server has answered; `signedOut` says why there is none.
const page = {viewer: null, signedOut: null, menuOpen: false};

function draw() {
  beginDrawing();
  render(
    page.viewer && !page.signedOut ? frame() : page.signedOut ? signIn(page.signedOut, enter) : nothing,
    document.getElementById('app'),
  );
  if (page.viewer && !page.signedOut) nameTab();
  endDrawing();
}

// A tab in the background says how much waits, and what it shows: a session, for instance.
function nameTab() {
  const view = viewOf(current().parts, page.viewer);
  const inbox = useList('api/inbox');
  const waiting = inbox.total ?? inbox.items.length;
  const heading = view.key.includes('/') && document.querySelector('#main h1')?.textContent.trim();
  document.title = `${waiting ? `(${waiting}) ` : ''}${heading || view.title} · ${page.viewer.project} · deepwork`;
}

function frame() {
  const {parts, query} = current();
  const view = viewOf(parts, page.viewer);
  const inbox = useList('api/inbox');
  const waiting = inbox.total ?? inbox.items.length;
  const content = view.draw({parts, query, viewer: page.viewer});
  return html` <button class="skip" type="button" @click=${() => document.getElementById('main').focus()}>
      Skip to the content
    </button>
    <div class="frame">
      ${sidebar(parts, waiting)}
      <div class="stage">
        ${topbar()} ${staleNotice()}
        <main id="main" tabindex="-1" aria-busy=${String(isFilling())} data-address=${location.hash}>
          ${keyed(view.key, html`<div class="view view-${view.name}">${content}</div>`)}
        </main>
      </div>
    </div>
    ${helpDialog()} ${doneNotice()}
    <div class="visually-hidden" role="status" aria-live="polite">${announced()}</div>`;
}

function sidebar(parts, waiting) {
  const links = NAVIGATION.filter(({name}) => page.viewer.views.includes(name));
  const chosen = parts[0] === 'tasks' ? 'plans' : parts[0] === 'messages' ? 'agents' : parts[0] || 'inbox';
  return html`<aside class=${page.menuOpen ? 'sidebar is-open' : 'sidebar'} aria-label="Sidebar">
      <a class="brand" href="#/overview" title=${page.viewer.project}>
        <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="8" />
          <path d="M9 10h8a6 6 0 0 1 0 12H9z" />
          <circle cx="25" cy="9" r="3" />
        </svg>
        <span class="brand-words"><strong>deepwork</strong><span class="quiet">${page.viewer.project}</span></span></a
      >
      <nav aria-label="Views" @click=${closeMenu}>
        ${links.map(
          ({name, text, shape, key}) =>
            html` <a
              href=${href([name])}
              class="nav-link"
              aria-current=${name === chosen ? 'page' : nothing}
              title=${`${text} (g ${key})`}
            >
              ${icon(shape)}<span>${text}</span>
              ${name === 'inbox' && waiting ? html`<span class="badge" aria-label="${waiting} waiting">${waiting}</span>` : nothing}</a
            >`,
        )}
      </nav>
      <div class="sidebar-foot">
        <button type="button" class="nav-link" @click=${openHelp}>
          ${icon('keyboard')}<span>Shortcuts</span><kbd>?</kbd>
        </button>
        <button type="button" class="nav-link" @click=${leave}>${icon('cross')}<span>Log out</span></button>
        <p class="quiet version">${page.viewer.version} · ${page.viewer.principal}</p>
      </div>
    </aside>
    ${page.menuOpen ? html`<button class="veil" type="button" aria-label="Close the menu" @click=${closeMenu}></button>` : nothing}`;
}

function topbar() {
  const chosen = theme();
  const next = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
  return html`<header class="topbar">
    <button
      type="button"
      class="icon-button menu-button"
      aria-label="Menu"
      aria-expanded=${String(page.menuOpen)}
      @click=${toggleMenu}
    >
      ${icon('menu')}
    </button>
    <form class="search" role="search" @submit=${search}>
      ${icon('search')}<input
        id="search"
        name="q"
        type="search"
        placeholder="Search everything"
        aria-label="Search everything"
        autocomplete="off"
        spellcheck="false"
        maxlength="200"
      /><kbd aria-hidden="true">/</kbd>
    </form>
    ${connectionMark()}
    <button
      type="button"
      class="icon-button"
      aria-label="Theme: ${chosen}. Change to ${next}."
      title="Theme: ${chosen}"
      @click=${() => {
        setTheme(next);
        redraw();
      }}
    >
      ${icon({system: 'system', light: 'sun', dark: 'moon'}[chosen])}
    </button>
  </header>`;
}

function search(event) {
  event.preventDefault();
  const text = event.target.elements.q.value.trim();
  if (text) go(href(['search'], {q: text}));
}

function toggleMenu() {
  page.menuOpen = !page.menuOpen;
  redraw();
}

function closeMenu() {
  page.menuOpen = false;
  redraw();
}

// Log in with a token, or with the cookie if there is none.
async function enter(token) {
  try {
    if (token) await login(token);
    page.viewer = await readViewer();
    page.signedOut = null;
    invalidateAll();
    startLive();
  } catch (error) {
    page.signedOut = {error: error.status === 401 && !token ? null : error, wasLoggedIn: Boolean(page.viewer)};
  }
  redraw();
}

// Any site can link to this page with a token of its owner. It must not take the place of the user's own login.
async function enterByAddress(token) {
  if (!page.viewer || page.signedOut) await enter('');
  if (token && page.signedOut) await enter(token);
}

async function leave() {
  stopLive();
  await logout().catch(() => {});
  page.viewer = null; // what was asked before is refused now, and that is no login that has ended
  page.signedOut = {error: null, wasLoggedIn: false};
  redraw();
}

// The token comes in the fragment, which no server sees. It is taken out of the address before anything else happens.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token) history.replaceState(null, '', href(['inbox']));
  return token;
}

let lastView = '';

// Readers of the screen hear where they are, and the keyboard starts from there, once the heading is there.
function focusHeading(place, attempt = 0) {
  const isElsewhere = document.activeElement?.closest('#search, .sidebar, dialog');
  if (place !== lastView || isElsewhere || attempt > HEADING_ATTEMPTS) return;
  /** @type {HTMLElement | null} */
  const heading = document.querySelector('main h1');
  if (heading && attempt > 1) heading.focus({preventScroll: true});
  else requestAnimationFrame(() => focusHeading(place, attempt + 1));
}

function onAddress() {
  const token = takeToken();
  if (token) enterByAddress(token);
  renameFormer();
  const {parts} = current();
  const place = parts.join('/');
  if (place !== lastView) {
    lastView = place;
    scrollTo(0, 0);
    focusHeading(place);
  }
  redraw();
}

whenSignedOut(() => {
  stopLive();
  page.signedOut = {error: null, wasLoggedIn: Boolean(page.viewer)};
  redraw();
});

applyTheme();
setDraw(draw);
startKeys(() => page.viewer?.views ?? []);
addEventListener('hashchange', onAddress);
setInterval(() => document.visibilityState === 'visible' && redraw(), TICK_MS);
const firstToken = takeToken();
renameFormer();
lastView = current().parts.join('/');
enterByAddress(firstToken);
