// What the search has found, by kind.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {apiPath} from '../api.js';
import {countOf, empty, pageHead, shown, thingHref, time} from '../parts.js';
import {use} from '../resources.js';

const KINDS = {session: 'Sessions', plan: 'Plans', task: 'Tasks', work: 'Tracked work', agent: 'Agents'};

export function searchView({query}) {
  const text = query.get('q') ?? '';
  if (!text)
    return html`<h1 tabindex="-1">Search</h1>
      ${empty({shape: 'search', title: 'Type what you look for into the field above.', text: 'Sessions, plans, tasks, tracked work and agents are found by name, goal or id.'})}`;
  return html`${pageHead('Search', `for “${text}”`)}
  ${shown(use(apiPath(['search'], {q: text})), ({items}) => {
    const kinds = Object.entries(Object.groupBy(items, ({kind}) => kind));
    return html`<p class="visually-hidden" role="status">${countOf(items.length, 'hit')}</p>
      ${
        kinds.length
          ? kinds.map(
              ([kind, found]) =>
                html`<section aria-label=${KINDS[kind] ?? kind}>
                  <h2>${KINDS[kind] ?? kind}</h2>
                  <ul class="rows">
                    ${found.map(hit)}
                  </ul>
                </section>`,
            )
          : empty({
              shape: 'search',
              title: 'Nothing found.',
              text: 'All words have to occur in the name, the goal or the id.',
            })
      }`;
  })}`;
}

function hit(item) {
  return html`<li class="item" data-row-group>
    <div class="item-main">
      <a class="item-title stretched" data-row href=${thingHref(item.thing) ?? '#/inbox'}>${item.title}</a>
      ${item.detail ? html`<p class="item-detail"><span class="cut">${item.detail}</span></p>` : nothing}
    </div>
    <div class="item-side">${item.at ? time(item.at) : nothing}</div>
  </li>`;
}
