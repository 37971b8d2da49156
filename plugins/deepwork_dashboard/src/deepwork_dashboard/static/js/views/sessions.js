// Sessions of workflows: the list, and one session with its steps, verdicts, outputs and history.

import {html, nothing, svg} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';
import {waitingFor} from '../answers.js';
import {apiPath} from '../api.js';
import '../elements/plan_graph.js';
import {duration, exact, money, now, number, quietFor, short, toMilliseconds} from '../format.js';
import {fileItem} from '../files.js';
import {drawingOf} from '../graph/workflow.js';
import {icon} from '../icons.js';
import {interventions} from '../interventions.js';
import {
  countOf,
  empty,
  facts,
  idMark,
  isEmpty,
  json,
  listPage,
  moreButton,
  pageHead,
  pill,
  prose,
  shown,
  statusIcon,
  stepBar,
  tabs,
  thingLink,
  time,
  titled,
} from '../parts.js';
import {use, useList} from '../resources.js';
import {href, setQuery, withQuery} from '../router.js';
import {isRunning, runPanel, runWords} from '../runs.js';

const STATUSES = [
  ['', 'All'],
  ['active', 'Active'],
  ['completed', 'Completed'],
  ['aborted', 'Aborted'],
  ['archived', 'Archived'],
];

export function sessionsView({query}) {
  const filters = {status: query.get('status'), job: query.get('job'), q: query.get('q')};
  return listPage(useList(apiPath(['sessions'], filters)), query, {
    title: 'Sessions',
    noun: 'session',
    order: 'last changed first',
    statuses: STATUSES,
    filter: 'Filter by goal, job, step or id',
    row: sessionRow,
    none: {
      shape: 'run',
      title: 'No session yet.',
      text: 'Connect an agent and ask it to run a workflow. These jobs are there:',
      command: 'deepwork jobs',
    },
  });
}

// What waits for a person, or by itself, needs no agent.
export function hasNoAgent(session) {
  const isCaredFor = session.waits || session.limit || isRunning(session);
  return session.status === 'active' && !isCaredFor && quietFor(session.last_call_at, session.gone_at) !== '';
}

export function sessionRow(session) {
  return html`<li class="item" data-row-group>
    <div class="item-icon">${statusIcon(session.waits ? 'waits' : session.status)}</div>
    <div class="item-main">
      <a class="item-title stretched" data-row href=${href(['sessions', session.id])}
        >${session.goal || `${session.job}/${session.workflow}`}</a
      >
      <p class="item-detail">
        <span class="cut">${session.job}/${session.workflow}</span
        >${session.status === 'active' ? html`<span class="cut">at <b>${session.step}</b></span>` : nothing}
        ${session.status === 'aborted' ? html`<span class="tone-bad">aborted</span>` : nothing}
        ${session.waits ? html`<span class="tone-warn">waits for a person</span>` : runWords(session)}
        ${hasNoAgent(session) ? html`<span>no agent since ${quietFor(session.last_call_at, session.gone_at)}</span>` : nothing}
      </p>
    </div>
    <div class="item-side">
      ${session.position && session.status === 'active' ? html`<span class="item-progress">${stepBar(session.position, {waits: session.waits})}<span class="quiet">${session.position[0]} of ${session.position[1]}</span></span>` : nothing}
      ${time(session.updated_at)}
    </div>
  </li>`;
}

export function sessionView({parts, query}) {
  const id = parts[1];
  return html`<a class="up" href="#/sessions">${icon('chevron')}Sessions</a> ${shown(
      use(apiPath(['sessions', id])),
      (session) =>
        html`${sessionHead(session)} ${intervene(session)} ${runPanel(session)}
        ${session.waits || session.run?.asks ? waitingFor(session.thing) : nothing}
        ${tabs(
          [
            ['', 'Steps', session.steps.length],
            ['graph', 'Graph'],
            ['history', 'History', session.history_total],
            ['about', 'About'],
          ],
          query.get('tab') ?? '',
          (tab) => href(['sessions', id], {tab}),
        )}
        ${(TABS[query.get('tab')] ?? steps)(session, query)}`,
    )}`;
}

const TABS = {graph, history, about};

function intervene({id, status, paused}) {
  if (status !== 'active') return nothing;
  return interventions({path: apiPath(['sessions', id]), noun: 'session', paused, others: ['say']});
}

function sessionHead(session) {
  const length = toMilliseconds(session.completed_at ?? session.updated_at) - toMilliseconds(session.started_at);
  const end = session.status === 'active' ? now() - toMilliseconds(session.started_at) : length;
  const spent = session.steps.reduce((sum, step) => sum + (step.spent?.cost_usd ?? 0), 0);
  const tokens = session.steps.reduce(
    (sum, step) => sum + (step.spent?.input_tokens ?? 0) + (step.spent?.output_tokens ?? 0),
    0,
  );
  const [position, count] = session.position ?? [];
  const done = () => `${countOf(session.steps.filter(({state}) => state === 'done').length, 'step')} done`;
  const about = html`${pill(session.waits ? 'waits' : session.status, session.waits ? 'Waits for a person' : undefined)}<span
      class="cut"
      >${session.job}/${session.workflow}</span
    >${idMark(session.id)}`;
  return html`${pageHead(session.goal || `${session.job}/${session.workflow}`, about, 'meta')}
  ${facts(
    [
      ['Started', time(session.started_at, {focusable: true})],
      [session.status === 'active' ? 'Runs for' : 'Took', duration(end)],
      ['Last change', time(session.updated_at, {focusable: true})],
      ['Step', count && (session.status === 'active' ? `${position} of ${count}` : done())],
      [
        'Reviews cost',
        tokens || spent ? html`${money(spent)} <span class="quiet">${short(tokens)} tokens</span>` : null,
      ],
      ['Branch', session.git?.branch && html`<code>${session.git.branch}</code>`, 'cut'],
    ],
    'strip',
  )}
  ${
    session.abort_reason
      ? html`<p class="notice tone-bad">
          ${icon('cross')}<span><b>Aborted.</b> ${session.abort_reason}</span>
        </p>`
      : nothing
  }`;
}

function steps(session, query) {
  const chosen =
    session.steps.find(({id}) => id === query.get('step')) ??
    session.steps.find(({state}) => state === 'current') ??
    session.steps.findLast(({state}) => state === 'done') ??
    session.steps[0];
  if (!chosen) return empty({title: 'This session has no steps.', shape: 'run'});
  return html`<div class="split">
    <nav aria-label="Steps">
      <ol class="timeline">
        ${repeat(
          session.steps,
          ({id}) => id,
          (step) => stepRow(session, step, step === chosen),
        )}
      </ol>
    </nav>
    <section class="card detail" aria-labelledby="step-title">${stepDetail(session, chosen)}</section>
  </div>`;
}

function graph(session, query) {
  const chosen = session.steps.find(({id}) => id === query.get('step'));
  return html`<plan-graph
      label="Steps in their order, those of a group above each other. Arrow keys go from step to step, Enter opens one. The tab Steps has the same as a list."
      .graph=${drawingOf(session)}
      .selected=${chosen?.id ?? null}
      @choose=${(event) => setQuery({step: event.detail ?? ''})}
    ></plan-graph>
    ${chosen ? html`<section class="card detail" aria-labelledby="step-title">${stepDetail(session, chosen)}</section>` : nothing}`;
}

function stepRow(session, step, isChosen) {
  const failed = step.reviews.filter(({passed}) => passed === false).length;
  return html`<li class="step is-${step.state} ${step.group ? 'in-group' : ''}" data-row-group>
    <span class="step-icon">${statusIcon(step.state === 'current' && session.waits ? 'waits' : step.state)}</span>
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
    ${gantt(session, step)}
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

// When the step ran, within the time of the session.
function gantt(session, step) {
  if (!step.started_at) return nothing;
  const from = toMilliseconds(session.started_at);
  const to = session.status === 'active' ? now() : toMilliseconds(session.completed_at ?? session.updated_at);
  const whole = Math.max(1, to - from);
  const start = Math.max(0, ((toMilliseconds(step.started_at) - from) / whole) * 100);
  const end = step.completed_at ? ((toMilliseconds(step.completed_at) - from) / whole) * 100 : 100;
  return html`<svg class="gantt" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">
    <rect class="bar-ground" width="100" height="3" />
    ${svg`<rect class="bar bar-${step.completed_at ? 'completed' : session.waits ? 'paused' : 'in_progress'}" x=${Math.min(start, 99)} width=${Math.max(1, end - start)} height="3"/>`}
  </svg>`;
}

function stepDetail(session, step) {
  const attempts = attemptsOf(step).reverse();
  const loose = step.reviews.filter(({attempt}) => attempt === null);
  return html`<header class="detail-head">
      <h2 id="step-title">${step.name || step.id}</h2>
      <p class="meta">
        ${pill(step.state === 'current' && session.waits ? 'waits' : step.state, step.state === 'current' && session.waits ? 'Waits for a person' : undefined)}<code
          class="cut"
          >${step.id}</code
        >
        ${step.started_at ? html`<span class="quiet">began ${time(step.started_at, {focusable: true})}</span>` : nothing}
        ${step.agent ? html`<span class="quiet">by ${step.agent}</span>` : nothing}
        ${stepLength(step) ? html`<span class="quiet">${step.completed_at ? 'took' : 'for'} ${stepLength(step)}</span>` : nothing}
        ${step.attempts ? html`<span class="quiet">${step.max_attempts ? `${step.attempts} of ${countOf(step.max_attempts, 'attempt')} used` : countOf(step.attempts, 'attempt')}</span>` : nothing}
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
        ? html`<h3>
              Reviews
              <a class="push" href=${href(['sessions', session.id, 'steps', step.id])}>See the work, line by line</a>
            </h3>
            ${attempts.map((attempt, index) => attemptCard(attempt, index === 0))}${loose.map(reviewCard)}`
        : nothing
    }
    ${
      step.outputs.length
        ? html`<h3>Outputs</h3>
            <ul class="outputs">
              ${step.outputs.map((output) => outputItem(session, step, output))}
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
    ${titled('Notes of the agent', prose(step.notes))}
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
      <span class="quiet">${passed ? 'passed' : error ? 'not judged' : 'needs work'}</span
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
      ${review.reused ? html`<span class="mini">reused</span>` : nothing} ${proofMark(review.proof)}
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
    ${
      review.findings?.length
        ? html`<ul class="criteria">
            ${review.findings.map(
              (finding) =>
                html`<li>
                  ${statusIcon(finding.level === 'error' ? 'failed' : 'waits')}
                  <div>
                    <p><code>${finding.file}:${finding.line}</code> <span class="quiet">${finding.level}</span></p>
                    <p class="prose quiet">${finding.message}</p>
                  </div>
                </li>`,
            )}
          </ul>`
        : nothing
    }
    ${saysMore(review) ? html`<blockquote class="prose">${review.feedback}</blockquote>` : nothing}
  </article>`;
}

// What a pass rests on: whether the gate was seen to refuse the work when it was broken.
const PROOFS = {
  content: ['good', 'proved by content', 'The gate has refused this work with its content broken.'],
  presence: ['good', 'proved by presence', 'The gate has refused this work where it was missing, and no finer change.'],
  cannot_fail: ['bad', 'cannot fail', 'The gate has passed this work also when it was broken.'],
  not_provable: ['quiet', 'not provable here', 'The gate was not seen to refuse broken work.'],
};

function proofMark(proof) {
  const [colour, text, meaning] = PROOFS[proof?.grade ?? proof?.result] ?? [];
  return text
    ? html`<span class="mini tone-${colour}" title=${[meaning, proof.reason].filter(Boolean).join(' ')}>${text}</span>`
    : nothing;
}

// Many reviewers repeat in their feedback what they say of each criterion.
function saysMore({feedback, criteria}) {
  const rest = criteria.reduce(
    (text, criterion) => (criterion.feedback ? text.replace(criterion.feedback, '') : text),
    feedback ?? '',
  );
  return /\w/.test(rest);
}

function outputItem(session, step, output) {
  return html`<li>
    <p class="output-name"><code>${output.name}</code></p>
    ${
      output.files
        ? html`<ul class="plain">
            ${output.files.map(({path}) => fileItem({session: session.id, step: step.id, path}))}
          </ul>`
        : nothing
    }
    ${'text' in output ? prose(output.text) : 'value' in output ? (typeof output.value === 'string' ? prose(output.value) : json(output.value)) : nothing}
  </li>`;
}

function history(session, query) {
  const list = useList(
    apiPath(['sessions', session.id, 'history'], {step: query.get('step'), kind: query.get('kind')}),
  );
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
                <span class="history-kind">${historyIcon(entry)}<b>${entry.what}</b></span
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
function historyWords({kind, by, detail}) {
  if (kind === 'verdict')
    return [detail.runner, detail.reused && 'reused', detail.feedback].filter(Boolean).join(' · ');
  const text = [detail.reason, detail.explanation, detail.error, detail.text].find(
    (value) => typeof value === 'string',
  );
  return [by, text].filter(Boolean).join(': ');
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

function about(session) {
  const parents = session.parents.map(
    (parent) => html`${thingLink(parent.thing, `${parent.job}/${parent.workflow}`)} `,
  );
  const rows = [
    ['Id', idMark(session.id)],
    ['Job', session.job],
    ['Workflow', session.workflow],
    ['Goal', session.goal],
    ['Started by', session.principal],
    ['Started', exact(session.started_at)],
    ['Ended', session.completed_at && exact(session.completed_at)],
    ['Branch', session.git?.branch],
    ['Commit', session.git?.commit && html`<code>${session.git.commit}</code>`],
    ['Work branch', session.branch_name],
    ['Instance', session.instance_id],
    ['Strict', session.strict ? 'yes' : 'no'],
    ['Revision', number(session.revision)],
    ['Started inside', parents.length && parents],
  ];
  return html`<div class="card">
    ${facts(rows, 'facts wide')} ${titled('What every step of this job knows', prose(session.job_info), 2)}
  </div>`;
}
