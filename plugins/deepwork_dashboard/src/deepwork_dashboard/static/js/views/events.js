// Everything that has happened, newest first. Thousands of rows stay fluent, because only those in sight are drawn.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {apiPath} from '../api.js';
import '../elements/virtual_rows.js';
import {exact, number} from '../format.js';
import {icon} from '../icons.js';
import {choices, empty, facts, filterBox, json, pageHead, shown, thingHref, thingLink, time} from '../parts.js';
import {useList} from '../resources.js';
import {setQuery, withQuery} from '../router.js';

const SOURCES = [
  ['', 'All'],
  ['core', 'Sessions'],
  ['orchestration', 'Plans'],
  ['tracking', 'Tracked work'],
];
const SHAPES = {core: 'run', orchestration: 'plan', tracking: 'tracked'};
const PAGE = 200;
// On a small screen a row has two lines.
const isNarrow = matchMedia('(max-width: 820px)');
const HEADS = ['When', 'Event', 'Of', 'By'];

export function eventsView({query, viewer}) {
  const path = apiPath(['events'], {
    source: query.get('source'),
    event: query.get('event'),
    about: query.get('about'),
    q: query.get('q'),
  });
  const list = useList(path, {pageSize: PAGE, onlyGrows: true});
  const sources = SOURCES.filter(([value]) => value !== 'orchestration' || viewer.views.includes('plans')).filter(
    ([value]) => value !== 'tracking' || viewer.views.includes('work'),
  );
  return html`${pageHead('Events', 'Everything that has happened, newest first.')}
    <div class="filters">
      ${sources.length > 2 ? choices('source', sources, query, {label: 'Source'}) : nothing}${filterBox(query, {label: 'Filter by event or text'})}
      ${query.get('about') ? html`<button type="button" class="chip" @click=${() => setQuery({about: ''})}><span class="cut">about ${query.get('about')}</span>${icon('cross', 'remove this filter')}</button>` : nothing}
      ${query.get('event') ? html`<button type="button" class="chip" @click=${() => setQuery({event: ''})}>${query.get('event')}${icon('cross', 'remove this filter')}</button>` : nothing}
    </div>
    ${shown(list, (events) => (events.length ? table(list, query) : noEvents(query)))}`;
}

function noEvents(query) {
  return ['q', 'source', 'about', 'event'].some((name) => query.get(name))
    ? empty({shape: 'search', title: 'No event fits this filter.'})
    : empty({
        shape: 'events',
        title: 'Nothing has happened yet.',
        text: 'What agents do appears here while they do it.',
        command: 'deepwork connect',
      });
}

function table(list, query) {
  const chosen = list.items.find(({id}) => id === query.get('id'));
  return html`<div class=${chosen ? 'plan-area has-task' : 'plan-area'}>
    <div class="plan-main">
      <div
        class="vtable columns-events"
        role="table"
        aria-label="Events"
        aria-rowcount=${list.next ? -1 : list.items.length + 1}
      >
        <div class="vhead" role="row" aria-rowindex="1">
          ${HEADS.map((head) => html`<span role="columnheader">${head}</span>`)}
        </div>
        <virtual-rows
          role="rowgroup"
          .rowHeight=${isNarrow.matches ? 54 : 40}
          .rows=${list.items}
          .row=${(event) => cells(event, query)}
          .onend=${() => list.more()}
        ></virtual-rows>
      </div>
      <p class="quiet centred">
        ${list.next ? `${number(list.items.length)} read, older ones follow.` : `${number(list.items.length)} events, that is all.`}
      </p>
    </div>
    ${chosen ? panel(chosen) : nothing}
  </div>`;
}

function cells(event, query) {
  return html`<span role="cell">${time(event.at)}</span>
    <span role="cell" class="cut"
      ><a
        class="stretched"
        href=${withQuery({id: event.id})}
        aria-current=${query.get('id') === event.id ? 'true' : nothing}
        >${icon(SHAPES[event.source] ?? 'events')} ${event.what}</a
      ></span
    >
    <span role="cell" class="cut">${event.title ?? html`<span class="quiet">–</span>`}</span
    ><span role="cell" class="cut quiet">${event.by?.name ?? '–'}</span>`;
}

function panel(event) {
  const [thing, about] = [thingHref(event.thing), thingHref(event.about)];
  return html`<aside class="panel card" aria-label="Event">
    <button type="button" class="icon-button close" aria-label="Close the event" @click=${() => setQuery({id: ''})}>
      ${icon('cross')}
    </button>
    <h2>${event.what}</h2>
    ${facts([
      ['When', exact(event.at)],
      ['By', event.by && thingLink(event.by.thing, event.by.name), 'cut'],
      ['Of', event.title],
      ['Event', html`<code>${event.event}</code> of ${event.source}`],
      ['Id', html`<code>${event.id}</code>`],
    ])}
    <p class="actions">
      ${thing ? html`<a class="button" href=${thing}>Open</a>` : nothing}${about ? html`<a class="button" href=${about}>What it belongs to</a>` : nothing}
      ${event.about ? html`<button type="button" class="button" @click=${() => setQuery({about: event.about, id: ''})}>All its events</button>` : nothing}
    </p>
    ${json(event.data)}
  </aside>`;
}
