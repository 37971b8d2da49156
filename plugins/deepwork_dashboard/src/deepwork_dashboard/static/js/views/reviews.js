// The rules by which changes are reviewed, and what has passed.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';
import {apiPath} from '../api.js';
import {countOf, empty, filterBox, moreButton, pill, prose, shown, statusIcon, tabs, time} from '../parts.js';
import {useList} from '../resources.js';
import {href} from '../router.js';

export function reviewsView({query}) {
  const tab = query.get('tab') ?? '';
  return html`<header class="head">
      <div>
        <h1 tabindex="-1">Reviews</h1>
        <p class="quiet">
          Rules say what is reviewed when files change; what has passed is not reviewed again until it changes.
        </p>
      </div>
    </header>
    ${tabs(
      [
        ['', 'Rules'],
        ['passes', 'Passed'],
      ],
      tab,
      (value) => href(['reviews'], {tab: value}),
    )}
    <div class="filters">${filterBox(query, {label: tab ? 'Filter what has passed' : 'Filter the rules'})}</div>
    ${tab === 'passes' ? passes(query) : rules(query)}`;
}

function rules(query) {
  const list = useList(apiPath(['reviews', 'rules'], {q: query.get('q')}));
  return shown(list, (items) =>
    items.length
      ? html`<ul class="rows">
            ${repeat(
              items,
              (rule) => `${rule.file} ${rule.name}`,
              (rule) =>
                html`<li class="item" data-row-group>
                  <div class="item-icon">${statusIcon(rule.error ? 'damaged' : 'ready')}</div>
                  <div class="item-main">
                    <span class="item-title" tabindex="0" data-row>${rule.name ?? rule.file}</span
                    >${rule.error ? html`<p class="notice tone-bad">${rule.error}</p>` : html`<div class="item-text">${prose(rule.description)}</div>`}
                  </div>
                  <div class="item-side"><code class="path">${rule.file}</code></div>
                </li>`,
            )}
          </ul>
          ${moreButton(list)}`
      : empty({
          shape: 'reviews',
          title: query.get('q') ? 'No rule fits this filter.' : 'No rules yet.',
          text: query.get('q') ? '' : 'A file .deepreview says what is reviewed. This checks such files:',
          command: query.get('q') ? '' : 'deepwork reviews lint',
        }),
  );
}

function passes(query) {
  const list = useList(apiPath(['reviews', 'passes'], {q: query.get('q')}));
  return shown(list, (items) =>
    items.length
      ? html`<ul class="rows">
            ${repeat(
              items,
              ({id}) => id,
              (pass) =>
                html`<li class="item" data-row-group>
                  <div class="item-icon">${statusIcon(pass.current === false ? 'skipped' : 'passed')}</div>
                  <div class="item-main">
                    <span class="item-title" tabindex="0" data-row>${pass.rule}</span>
                    <div class="item-text">${prose(pass.summary, {lines: 3})}</div>
                    <p class="item-detail">
                      <span class="cut"
                        >${countOf(pass.files.length, 'file')}:
                        ${pass.files.slice(0, 3).join(', ')}${pass.files.length > 3 ? ' …' : ''}</span
                      >
                    </p>
                  </div>
                  <div class="item-side">
                    ${pass.current === false ? pill('skipped', 'files have changed since') : nothing}<span
                      class="quiet cut"
                      >${pass.by ?? ''}</span
                    >${time(pass.at)}
                  </div>
                </li>`,
            )}
          </ul>
          ${moreButton(list)}`
      : empty({
          shape: 'reviews',
          title: query.get('q') ? 'Nothing fits this filter.' : 'Nothing has passed a review yet.',
          text: query.get('q') ? '' : 'An agent asks for reviews of its changes with get_review_instructions.',
        }),
  );
}
