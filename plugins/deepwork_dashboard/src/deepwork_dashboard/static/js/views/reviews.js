// The rules by which changes are reviewed, and what has passed.

import {html, nothing} from '../../vendor/lit-html/lit-html.js';
import {apiPath} from '../api.js';
import {countOf, filterBox, listOf, pageHead, pill, prose, statusIcon, tabs, time} from '../parts.js';
import {useList} from '../resources.js';
import {href} from '../router.js';

export function reviewsView({query}) {
  const tab = query.get('tab') ?? '';
  return html`${pageHead('Reviews', 'Rules say what is reviewed when files change; what has passed is not reviewed again until it changes.')}
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
  return listOf(useList(apiPath(['reviews', 'rules'], {q: query.get('q')})), {
    key: (rule) => `${rule.file} ${rule.name}`,
    row: (rule) =>
      html`<li class="item" data-row-group>
        <div class="item-icon">${statusIcon(rule.error ? 'damaged' : 'ready')}</div>
        <div class="item-main">
          <span class="item-title" tabindex="0" data-row>${rule.name ?? rule.file}</span
          >${rule.error ? html`<p class="notice tone-bad">${rule.error}</p>` : html`<div class="item-text">${prose(rule.description)}</div>`}
        </div>
        <div class="item-side"><code class="path">${rule.file}</code></div>
      </li>`,
    none: query.get('q')
      ? {shape: 'search', title: 'No rule fits this filter.'}
      : {
          shape: 'reviews',
          title: 'No rules yet.',
          text: 'A file .deepreview says what is reviewed. This checks such files:',
          command: 'deepwork reviews lint',
        },
  });
}

function passes(query) {
  return listOf(useList(apiPath(['reviews', 'passes'], {q: query.get('q')})), {
    row: (pass) =>
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
          ${pass.current === false ? pill('skipped', 'files have changed since') : nothing}<span class="quiet cut"
            >${pass.by ?? ''}</span
          >${time(pass.at)}
        </div>
      </li>`,
    none: query.get('q')
      ? {shape: 'search', title: 'Nothing fits this filter.'}
      : {
          shape: 'reviews',
          title: 'Nothing has passed a review yet.',
          text: 'An agent asks for reviews of its changes with get_review_instructions.',
        },
  });
}
