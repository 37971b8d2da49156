// What waits for a person, the most urgent and what has waited longest first, and the answers to it.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';
import {inboxItem, kindWords, workHref} from '../answers.js';
import {apiPath} from '../api.js';
import {icon} from '../icons.js';
import {choices, countOf, empty, filterBox, moreButton, pageHead, shown} from '../parts.js';
import {useList} from '../resources.js';
import {replace} from '../router.js';

export function inboxView({parts, query}) {
  const all = useList(apiPath(['inbox']));
  const list =
    query.get('q') || query.get('kind')
      ? useList(apiPath(['inbox'], {q: query.get('q'), kind: query.get('kind')}))
      : all;
  // An item with an address of its own comes first; a piece of work is answered on its own page.
  const named = parts[1] && useList(apiPath(['inbox'], {q: parts[1]})).items.find(({id}) => id === parts[1]);
  if (named?.kind === 'person' && workHref(named)) replace(workHref(named));
  const kinds = Object.entries(Object.groupBy(all.items, ({kind}) => kind));
  return html`${pageHead('Inbox', all.data ? headline((all.total ?? all.items.length) + all.unlisted) : nothing)}
  ${
    kinds.length > 1 || all.items.length > 5 || query.get('q')
      ? html`<div class="filters">
          ${choices('kind', [['', 'All', all.items.length], ...kinds.map(([kind, items]) => [kind, kindWords(kind), items.length])], query, {label: 'Kinds'})}
          ${filterBox(query, {label: 'Filter the inbox'})}
        </div>`
      : nothing
  }
  ${(list.problems ?? []).map((text) => html`<p class="notice tone-warn">${icon('alert')}<span>${text}</span></p>`)}
  ${shown(list, (items) =>
    items.length
      ? html`<div class="inbox">
            ${repeat(
              named ? [named, ...items.filter(({id}) => id !== named.id)] : items,
              ({id}) => id,
              (item) => inboxItem(item, {chosen: item.id === parts[1]}),
            )}
          </div>
          ${moreButton(list)}
          ${list.unlisted && !list.next ? html`<p class="more">${countOf(list.unlisted, 'more thing waits', 'more things wait')}, listed when these are answered.</p>` : nothing}`
      : query.get('q') || query.get('kind')
        ? empty({shape: 'search', title: 'Nothing that waits fits this filter.'})
        : empty({
            title: 'Nothing waits for you.',
            text: 'What needs a person appears here by itself. To be told in the terminal, or by a webhook:',
            command: 'deepwork inbox --watch --notify',
          }),
  )}`;
}

function headline(count) {
  return count
    ? `${countOf(count, 'thing waits', 'things wait')} for a person. What is urgent comes first, then what has waited longest.`
    : 'Agents go on by themselves.';
}
