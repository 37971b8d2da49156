// Runs of job workflows: the list, and one run with its steps, verdicts, outputs and history.

import {html, nothing, svg} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';
import {waitingFor} from '../answers.js';
import {apiPath} from '../api.js';
import {bytes, duration, exact, money, now, number, quietFor, short, toMilliseconds, words} from '../format.js';
import {icon} from '../icons.js';
import {note, setNote} from '../page.js';
import {
  countOf,
  empty,
  idMark,
  isEmpty,
  json,
  listPage,
  moreButton,
  pill,
  prose,
  shown,
  statusIcon,
  stepBar,
  tabs,
  thingLink,
  time,
} from '../parts.js';
import {use, useList} from '../resources.js';
import {href, withQuery} from '../router.js';

const STATUSES = [
  ['', 'All'],
  ['active', 'Active'],
  ['completed', 'Completed'],
  ['aborted', 'Aborted'],
  ['archived', 'Archived'],
];

export function runsView({query}) {
  const filters = {status: query.get('status'), job: query.get('job'), q: query.get('q')};
  return listPage(useList(apiPath(['runs'], filters)), query, {
    title: 'Runs',
    noun: 'run',
    order: 'last changed first',
    statuses: STATUSES,
    filter: 'Filter by goal, job, step or id',
    row: runRow,
    none: {
      shape: 'run',
      title: 'No run yet.',
      text: 'Connect an agent and ask it to run a workflow. These jobs are there:',
      command: 'deepwork jobs',
    },
  });
}

// What waits for a person needs no agent.
export function hasNoAgent(run) {
  return run.status === 'active' && !run.waits && quietFor(run.last_call_at) !== '';
}

export function runRow(run) {
  return html`<li class="item" data-row-group>
    <div class="item-icon">${statusIcon(run.waits ? 'waits' : run.status)}</div>
    <div class="item-main">
      <a class="item-title stretched" data-row href=${href(['runs', run.id])}
        >${run.goal || `${run.job}/${run.workflow}`}</a
      >
      <p class="item-detail">
        <span class="cut">${run.job}/${run.workflow}</span
        >${run.status === 'active' ? html`<span class="cut">at <b>${run.step}</b></span>` : nothing}
        ${run.status === 'aborted' ? html`<span class="tone-bad">aborted</span>` : nothing}
        ${run.waits ? html`<span class="tone-warn">waits for a person</span>` : hasNoAgent(run) ? html`<span>no agent since ${quietFor(run.last_call_at)}</span>` : nothing}
      </p>
    </div>
    <div class="item-side">
      ${run.position && run.status === 'active' ? html`<span class="item-progress">${stepBar(run.position, {waits: run.waits})}<span class="quiet">${run.position[0]} of ${run.position[1]}</span></span>` : nothing}
      ${time(run.updated_at)}
    </div>
  </li>`;
}

export function runView({parts, query}) {
  const id = parts[1];
  return html`<a class="up" href="#/runs">${icon('chevron')}Runs</a> ${shown(
      use(apiPath(['runs', id])),
      (run) =>
        html`${runHead(run)} ${run.waits ? waitingFor(run.thing) : nothing}
        ${tabs(
          [
            ['', 'Steps', run.steps.length],
            ['history', 'History', run.history_total],
            ['about', 'About'],
          ],
          query.get('tab') ?? '',
          (tab) => href(['runs', id], {tab}),
        )}
        ${query.get('tab') === 'history' ? history(run, query) : query.get('tab') === 'about' ? about(run) : steps(run, query)}`,
    )}`;
}

function runHead(run) {
  const length = toMilliseconds(run.completed_at ?? run.updated_at) - toMilliseconds(run.started_at);
  const end = run.status === 'active' ? now() - toMilliseconds(run.started_at) : length;
  const spent = run.steps.reduce((sum, step) => sum + (step.spent?.cost_usd ?? 0), 0);
  const tokens = run.steps.reduce(
    (sum, step) => sum + (step.spent?.input_tokens ?? 0) + (step.spent?.output_tokens ?? 0),
    0,
  );
  return html`<header class="head">
      <div>
        <h1 tabindex="-1">${run.goal || `${run.job}/${run.workflow}`}</h1>
        <p class="meta">
          ${pill(run.waits ? 'waits' : run.status, run.waits ? 'Waits for a person' : undefined)}<span class="cut"
            >${run.job}/${run.workflow}</span
          >${idMark(run.id)}
        </p>
      </div>
    </header>
    <dl class="strip">
      <div>
        <dt>Started</dt>
        <dd>${time(run.started_at, {focusable: true})}</dd>
      </div>
      <div>
        <dt>${run.status === 'active' ? 'Runs for' : 'Took'}</dt>
        <dd>${duration(end)}</dd>
      </div>
      <div>
        <dt>Last change</dt>
        <dd>${time(run.updated_at, {focusable: true})}</dd>
      </div>
      ${
        run.position
          ? html`<div>
              <dt>Step</dt>
              <dd>
                ${run.status === 'active' ? `${run.position[0]} of ${run.position[1]}` : countOf(run.steps.filter(({state}) => state === 'done').length, 'step') + ' done'}
              </dd>
            </div>`
          : nothing
      }
      ${
        tokens || spent
          ? html`<div>
              <dt>Reviews cost</dt>
              <dd>${money(spent)} <span class="quiet">${short(tokens)} tokens</span></dd>
            </div>`
          : nothing
      }
      ${
        run.git?.branch
          ? html`<div>
              <dt>Branch</dt>
              <dd class="cut"><code>${run.git.branch}</code></dd>
            </div>`
          : nothing
      }
    </dl>
    ${
      run.abort_reason
        ? html`<p class="notice tone-bad">
            ${icon('cross')}<span><b>Aborted.</b> ${run.abort_reason}</span>
          </p>`
        : nothing
    }`;
}

function steps(run, query) {
  const chosen =
    run.steps.find(({id}) => id === query.get('step')) ??
    run.steps.find(({state}) => state === 'current') ??
    run.steps.findLast(({state}) => state === 'done') ??
    run.steps[0];
  if (!chosen) return empty({title: 'This run has no steps.', shape: 'run'});
  return html`<div class="split">
    <nav aria-label="Steps">
      <ol class="timeline">
        ${repeat(
          run.steps,
          ({id}) => id,
          (step) => stepRow(run, step, step === chosen),
        )}
      </ol>
    </nav>
    <section class="card detail" aria-labelledby="step-title">${stepDetail(run, chosen)}</section>
  </div>`;
}

function stepRow(run, step, isChosen) {
  const failed = step.reviews.filter(({passed}) => passed === false).length;
  return html`<li class="step is-${step.state} ${step.group ? 'in-group' : ''}" data-row-group>
    <span class="step-icon">${statusIcon(step.state === 'current' && run.waits ? 'waits' : step.state)}</span>
    <a
      class="step-link stretched"
      data-row
      href=${withQuery({step: step.id, tab: ''})}
      aria-current=${isChosen ? 'true' : nothing}
      >${step.name || step.id}</a
    >
    <span class="step-side"
      >${step.attempts > 1 || failed ? html`<span class="attempts" title=${countOf(step.attempts, 'attempt')}>${attemptDots(step)}</span>` : nothing}
      ${step.override ? html`<span class="mini tone-warn" title="Passed by override">override</span>` : nothing}
      <span class="quiet">${stepLength(step)}</span></span
    >
    ${gantt(run, step)}
  </li>`;
}

function stepLength(step) {
  if (step.completed_at) return duration(toMilliseconds(step.completed_at) - toMilliseconds(step.started_at));
  if (step.started_at && ['current', 'open'].includes(step.state))
    return duration(now() - toMilliseconds(step.started_at));
  return '';
}

// An attempt has passed if all its verdicts have.
function attemptsOf(step) {
  const attempts = Map.groupBy(
    step.reviews.filter(({attempt}) => attempt !== null),
    ({attempt}) => attempt,
  );
  return [...attempts].map(([attempt, reviews]) => ({
    attempt,
    reviews,
    passed: reviews.every(({passed}) => passed),
    error: reviews.some(({error}) => error),
  }));
}

function attemptDots(step) {
  return attemptsOf(step)
    .slice(-6)
    .map(
      ({attempt, passed}) =>
        html`<span class="attempt tone-${passed ? 'good' : 'bad'}"
          >${icon(passed ? 'check' : 'cross', `attempt ${attempt} ${passed ? 'passed' : 'failed'}`)}</span
        >`,
    );
}

// When the step ran, within the time of the run.
function gantt(run, step) {
  if (!step.started_at) return nothing;
  const from = toMilliseconds(run.started_at);
  const to = run.status === 'active' ? now() : toMilliseconds(run.completed_at ?? run.updated_at);
  const whole = Math.max(1, to - from);
  const start = Math.max(0, ((toMilliseconds(step.started_at) - from) / whole) * 100);
  const end = step.completed_at ? ((toMilliseconds(step.completed_at) - from) / whole) * 100 : 100;
  return html`<svg class="gantt" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">
    <rect class="bar-ground" width="100" height="3" />
    ${svg`<rect class="bar bar-${step.completed_at ? 'completed' : run.waits ? 'paused' : 'in_progress'}" x=${Math.min(start, 99)} width=${Math.max(1, end - start)} height="3"/>`}
  </svg>`;
}

function stepDetail(run, step) {
  const attempts = attemptsOf(step).reverse();
  const loose = step.reviews.filter(({attempt}) => attempt === null);
  return html`<header class="detail-head">
      <h2 id="step-title">${step.name || step.id}</h2>
      <p class="meta">
        ${pill(step.state === 'current' && run.waits ? 'waits' : step.state, step.state === 'current' && run.waits ? 'Waits for a person' : undefined)}<code
          class="cut"
          >${step.id}</code
        >
        ${step.started_at ? html`<span class="quiet">began ${time(step.started_at, {focusable: true})}</span>` : nothing}
        ${stepLength(step) ? html`<span class="quiet">${step.completed_at ? 'took' : 'for'} ${stepLength(step)}</span>` : nothing}
        ${step.attempts ? html`<span class="quiet">${step.max_attempts ? `attempt ${step.attempts} of ${step.max_attempts}` : countOf(step.attempts, 'attempt')}</span>` : nothing}
        ${step.spent?.verdicts ? html`<span class="quiet">${money(step.spent.cost_usd)}, ${short(step.spent.input_tokens + step.spent.output_tokens)} tokens</span>` : nothing}
      </p>
    </header>
    ${
      step.override
        ? html`<div class="notice tone-warn">
            ${icon('hand')}
            <div>
              <p>
                <b>Passed by override</b> of
                ${{person: 'a person', agent: 'the agent', self_review: 'a self-review'}[step.override.by] ?? step.override.by}${step.override.who ? ` (${step.override.who})` : ''},
                ${time(step.override.at, {focusable: true})}
              </p>
              ${prose(step.override.reason)}
            </div>
          </div>`
        : nothing
    }
    ${step.runner_failures ? html`<p class="notice tone-warn">${icon('alert')}<span>The reviewer gave no verdict ${countOf(step.runner_failures, 'time')} in a row.</span></p>` : nothing}
    ${
      attempts.length || loose.length
        ? html`<h3>Reviews</h3>
            ${attempts.map((attempt, index) => attemptCard(attempt, index === 0))}${loose.map(reviewCard)}`
        : nothing
    }
    ${
      step.outputs.length
        ? html`<h3>Outputs</h3>
            <ul class="outputs">
              ${step.outputs.map((output) => outputItem(run, step, output))}
            </ul>`
        : step.declared_outputs.length
          ? html`<h3>Outputs to come</h3>
              <ul class="outputs">
                ${step.declared_outputs.map(
                  (output) =>
                    html`<li>
                      <p class="output-name">
                        <code>${output.name}</code
                        ><span class="quiet">${output.type}${output.required ? '' : ', optional'}</span>
                      </p>
                      ${prose(output.description)}
                    </li>`,
                )}
              </ul>`
          : nothing
    }
    ${
      step.notes
        ? html`<h3>Notes of the agent</h3>
            ${prose(step.notes)}`
        : nothing
    }
    ${
      step.inputs.length
        ? html`<h3>Inputs</h3>
            <ul class="plain">
              ${step.inputs.map(
                (input) =>
                  html`<li>
                    <code>${input.name}</code>
                    ${input.from_step ? html`<span class="quiet"> from <a href=${withQuery({step: input.from_step})}>${input.from_step}</a></span>` : nothing}
                    ${(input.paths ?? []).map((path) => html` <code class="path">${path}</code>`)}${prose(input.description)}
                  </li>`,
              )}
            </ul>`
        : nothing
    }
    ${
      step.instructions
        ? html`<details class="fold">
            <summary>Instructions of this step</summary>
            <div class="prose scroll" tabindex="0">${step.instructions}</div>
          </details>`
        : nothing
    }`;
}

function attemptCard({attempt, reviews, passed, error}, isNewest) {
  return html`<details class="attempt-card" ?open=${isNewest}>
    <summary>
      ${statusIcon(passed ? 'passed' : error ? 'waits' : 'failed')}<b>Attempt ${attempt}</b>
      <span class="quiet">${passed ? 'passed' : error ? 'no verdict' : 'needs work'}</span
      ><span class="push">${time(reviews.at(-1).at)}</span>
    </summary>
    ${reviews.map(reviewCard)}
  </details>`;
}

function reviewCard(review) {
  return html`<article class="review">
    <p class="review-meta">
      <span class="cut">${review.file ? html`<code>${review.file}</code>` : (review.run_each ?? 'step')}</span
      ><span class="quiet cut">${review.runner}${review.model ? ` · ${review.model}` : ''}</span>
      ${review.reused ? html`<span class="mini">reused</span>` : nothing}
      ${review.seconds !== null && review.seconds !== undefined ? html`<span class="quiet">${duration(review.seconds * 1000)}</span>` : nothing}
      ${review.cost_usd ? html`<span class="quiet">${money(review.cost_usd)}</span>` : nothing}
    </p>
    ${review.error ? html`<p class="notice tone-warn">${icon('alert')}<span>${review.error}</span></p>` : nothing}
    ${
      review.criteria.length
        ? html`<ul class="criteria">
            ${review.criteria.map(
              (criterion) =>
                html`<li>
                  ${statusIcon(criterion.passed ? 'passed' : 'failed')}
                  <div>
                    <p>
                      ${criterion.question ? html`${criterion.question} <code class="quiet">${criterion.criterion}</code>` : html`<code>${criterion.criterion}</code>`}
                    </p>
                    ${criterion.feedback ? html`<p class="prose quiet">${criterion.feedback}</p>` : nothing}
                  </div>
                </li>`,
            )}
          </ul>`
        : nothing
    }
    ${saysMore(review) ? html`<blockquote class="prose">${review.feedback}</blockquote>` : nothing}
  </article>`;
}

// Many reviewers repeat in their feedback what they say of each criterion.
function saysMore({feedback, criteria}) {
  const rest = criteria.reduce(
    (text, criterion) => (criterion.feedback ? text.replace(criterion.feedback, '') : text),
    feedback ?? '',
  );
  return /\w/.test(rest);
}

function outputItem(run, step, output) {
  return html`<li>
    <p class="output-name"><code>${output.name}</code></p>
    ${
      output.files
        ? html`<ul class="plain">
            ${output.files.map(({path}) => fileItem(run, step, path))}
          </ul>`
        : nothing
    }
    ${'text' in output ? prose(output.text) : 'value' in output ? (typeof output.value === 'string' ? prose(output.value) : json(output.value)) : nothing}
  </li>`;
}

function fileItem(run, step, path) {
  const key = `preview ${run.id} ${step.id} ${path}`;
  const isOpen = note(key, false);
  return html`<li>
    <button
      type="button"
      class="file-link"
      aria-expanded=${String(isOpen)}
      @click=${() => setNote(key, isOpen ? undefined : true)}
    >
      ${icon('file')}<span class="path">${path}</span>${icon('chevron')}
    </button>
    ${isOpen ? preview(use(apiPath(['runs', run.id, 'preview'], {step: step.id, path}))) : nothing}
  </li>`;
}

const NO_PREVIEW = {
  binary: 'This file is not text.',
  large: 'This file is too large to be shown here.',
  missing: 'This file is not there any more.',
};

function preview(resource) {
  return shown(
    resource,
    (file) =>
      html`<div class="preview">
        <p class="review-meta">
          <span class="quiet">${file.size === null || file.size === undefined ? '' : bytes(file.size)}</span>
          ${file.changed ? html`<span class="mini tone-warn">changed since it was reported</span>` : nothing}${file.truncated ? html`<span class="mini">only its beginning</span>` : nothing}
        </p>
        ${file.kind === 'text' ? html`<pre class="code" tabindex="0" aria-label=${`Content of ${file.path}`}>${file.text}</pre>` : html`<p class="quiet">${NO_PREVIEW[file.kind] ?? file.reason}</p>`}
      </div>`,
  );
}

function history(run, query) {
  const list = useList(apiPath(['runs', run.id, 'history'], {step: query.get('step'), kind: query.get('kind')}));
  return html`${
    query.get('step')
      ? html`<p class="filters">
          <span>Only step <b>${query.get('step')}</b></span> <a href=${withQuery({step: ''})}>all steps</a>
        </p>`
      : nothing
  }
  ${shown(
    list,
    (entries) =>
      html`<ol class="history">
          ${repeat(
            entries,
            ({number: position}) => position,
            (entry) =>
              html`<li>
                <span class="history-kind">${historyIcon(entry)}<b>${words(entry.kind)}</b></span
                >${entry.step ? html`<a class="cut" href=${withQuery({tab: '', step: entry.step})}>${entry.step}</a>` : html`<span></span>`}
                <span class="push">${time(entry.at, {focusable: true})}</span>
                ${
                  isEmpty(entry.detail)
                    ? nothing
                    : html`<details>
                        <summary>${historyWords(entry) || 'Details'}</summary>
                        ${json(entry.detail)}
                      </details>`
                }
              </li>`,
          )}
        </ol>
        ${moreButton(list)}`,
  )}`;
}

// The one thing of an entry that is worth reading without opening it.
function historyWords({kind, detail}) {
  if (kind === 'verdict')
    return [detail.runner, detail.passed ? 'passed' : 'needs work', detail.reused && 'reused', detail.feedback]
      .filter(Boolean)
      .join(' · ');
  if (kind === 'attempt') return `Attempt ${detail.number}`;
  return [detail.reason, detail.explanation, detail.error].find((text) => typeof text === 'string') ?? '';
}

function historyIcon({kind, detail}) {
  const passed = detail?.passed;
  const status =
    {
      verdict: passed === false ? 'failed' : 'passed',
      completed: 'completed',
      step_completed: 'completed',
      aborted: 'aborted',
      override: 'waits',
      infrastructure: 'waits',
      started: 'active',
    }[kind] ?? 'offline';
  return statusIcon(status);
}

function about(run) {
  const facts = [
    ['Id', idMark(run.id)],
    ['Job', run.job],
    ['Workflow', run.workflow],
    ['Goal', run.goal],
    ['Started by', run.principal],
    ['Started', exact(run.started_at)],
    ['Ended', run.completed_at && exact(run.completed_at)],
    ['Branch', run.git?.branch],
    ['Commit', run.git?.commit && html`<code>${run.git.commit}</code>`],
    ['Work branch', run.branch_name],
    ['Instance', run.instance_id],
    ['Strict', run.strict ? 'yes' : 'no'],
    ['Revision', number(run.revision)],
  ].filter(([, value]) => value);
  return html`<div class="card">
    <dl class="facts wide">
      ${facts.map(
        ([name, value]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
      ${
        run.parents.length
          ? html`<div>
              <dt>Started inside</dt>
              <dd>
                ${run.parents.map((parent) => html`${thingLink(parent.thing, `${parent.job}/${parent.workflow}`)} `)}
              </dd>
            </div>`
          : nothing
      }
    </dl>
    ${
      run.job_info
        ? html`<h2>What every step of this job knows</h2>
            <div class="prose">${run.job_info}</div>`
        : nothing
    }
  </div>`;
}
