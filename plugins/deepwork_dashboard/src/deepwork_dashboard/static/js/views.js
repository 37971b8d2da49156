// The views, by the first part of the address.

import {html} from '../vendor/lit-html/lit-html.js';
import {words} from './format.js';
import {empty} from './parts.js';
import {agentsView, agentView, messagesView} from './views/agents.js';
import {eventsView} from './views/events.js';
import {inboxView} from './views/inbox.js';
import {overviewView} from './views/overview.js';
import {pieceView} from './views/piece.js';
import {planView, plansView, taskView} from './views/plans.js';
import {reviewsView} from './views/reviews.js';
import {sessionsView, sessionView} from './views/sessions.js';
import {searchView} from './views/search.js';
import {workflowsView, workflowView} from './views/work.js';

// In the order of the sidebar; `key` follows `g`.
export const NAVIGATION = [
  {name: 'inbox', text: 'Inbox', shape: 'inbox', key: 'i'},
  {name: 'overview', text: 'Overview', shape: 'overview', key: 'o'},
  {name: 'sessions', text: 'Sessions', shape: 'run', key: 's'},
  {name: 'plans', text: 'Plans', shape: 'plan', key: 'p'},
  {name: 'work', text: 'Tracked work', shape: 'tracked', key: 't'},
  {name: 'agents', text: 'Agents', shape: 'agents', key: 'a'},
  {name: 'reviews', text: 'Reviews', shape: 'reviews', key: 'v'},
  {name: 'events', text: 'Events', shape: 'events', key: 'e'},
];

// One item of a view has an address of two parts: `#/sessions/ID`; a piece of work is below its session.
const VIEWS = {
  inbox: [inboxView, inboxView],
  overview: [overviewView],
  sessions: [sessionsView, sessionView, pieceView],
  plans: [plansView, planView],
  tasks: [null, taskView],
  work: [workflowsView, workflowView],
  agents: [agentsView, agentView],
  messages: [messagesView],
  reviews: [reviewsView],
  events: [eventsView],
  search: [searchView],
};
const NEEDS = {tasks: 'plans', messages: 'agents'};

export function viewOf(parts, viewer) {
  const [name = 'inbox', id, below, step] = parts;
  const draw = VIEWS[name]?.[below === 'steps' && step ? 2 : id === undefined ? 0 : 1];
  const needed = NEEDS[name] ?? name;
  if (!draw || (name !== 'search' && !viewer.views.includes(needed)))
    return {name: 'unknown', key: 'unknown', title: 'Not found', draw: unknownView};
  const title = NAVIGATION.find((entry) => entry.name === name)?.text ?? words(name);
  return {name, key: id === undefined || name === 'inbox' ? name : parts.join('/'), title, draw};
}

function unknownView() {
  return html`<h1 tabindex="-1">Nothing here</h1>
    ${empty({shape: 'search', title: 'This address names no view.', text: 'The view may belong to a plugin that is not installed. These are:', command: 'deepwork plugins'})}
    <p class="centred"><a href="#/inbox">To the inbox</a></p>`;
}
