// The run of a session: which agent works, since when, what it has cost and waits for, and what people do about it.

import {html, nothing} from '../vendor/lit-html/lit-html.js';
import {carryOut, refusal} from './acting.js';
import {apiPath, isPerson} from './api.js';
import {clock, exact, money, now, short, toMilliseconds} from './format.js';
import {icon} from './icons.js';
import {note} from './page.js';
import {countOf, time} from './parts.js';

const DAY_MS = 86_400_000;

// What a session in a list does now; nothing if no agent was ever started for it.
export function runWords({run, limit}) {
  if (limit && run?.state !== 'running')
    return html`<span class="tone-warn">waits until ${moment(limit.until)}: ${limit.cause}</span>`;
  if (!run) return nothing;
  const cost = run.cost_usd === null ? nothing : html` · ${money(run.cost_usd)}`;
  if (run.state === 'running') return html`<span>${run.agent} works since ${moment(run.since)}${cost}</span>`;
  if (run.state === 'paused') return html`<span class="tone-warn">the run waits for a person${cost}</span>`;
  if (run.state === 'interrupted') return html`<span class="tone-warn">the run of ${run.agent} has died${cost}</span>`;
  return nothing;
}

export function isRunning({run}) {
  return ['running', 'waiting', 'paused'].includes(run?.state);
}

export function runPanel(session) {
  const {run} = session;
  if (!run || (!run.state && !run.can_continue_with.length)) return nothing;
  return html`<section class="card run" aria-label="Run">
    <p class="run-now">${icon('agents')}<span>${sentence(session)}</span></p>
    ${
      run.agents.length
        ? html`<ul class="plain quiet">
            ${run.agents.map((agent) => html`<li>${agentWords(agent)}</li>`)}
          </ul>`
        : nothing
    }
    ${session.status === 'active' && isPerson() ? buttons(session) : nothing}
  </section>`;
}

function sentence({run, limit, waits}) {
  if (run.state === 'running') return html`<b>${run.agent}</b> works on it since ${time(run.since, {focusable: true})}`;
  if (limit) return html`Waits until <b>${moment(limit.until)}</b>: ${limit.cause}`;
  if (run.asks) return html`The run waits for a person: ${run.asks.what}`;
  if (run.state === 'paused' || waits) return html`Waits for a person`;
  if (run.state === 'interrupted') return html`The run has died. What was completed is safe; an agent can go on.`;
  if (run.state === 'ended') return html`No agent works on it. The last was <b>${run.agent}</b>: ${run.last_end}`;
  if (run.state) return html`The next agent is about to start`;
  return html`No agent was started here yet`;
}

function agentWords({name, starts, input_tokens: read, output_tokens: written, cost_usd: cost}) {
  const dollars = cost === null ? 'no dollars said' : money(cost);
  return `${name}: started ${countOf(starts, 'time')}, ${short(read)} tokens read, ${short(written)} written, ${dollars}`;
}

function buttons(session) {
  const {run} = session;
  const key = `run ${session.id}`;
  const state = note(key, {});
  const others = run.can_continue_with.filter((name) => run.state !== 'running' || name !== run.agent);
  const send = (action, agent = null) => carryOut(key, apiPath(['sessions', session.id, 'run']), {action, agent});
  return html`<div class="actions">
      ${
        isRunning(session)
          ? html`<button type="button" class="button" ?disabled=${Boolean(state.busy)} @click=${() => send('stop')}>
              Stop
            </button>`
          : nothing
      }
      ${others.map(
        (name) =>
          html`<button
            type="button"
            class="button"
            ?disabled=${Boolean(state.busy)}
            @click=${() => send('continue', name)}
          >
            Continue with ${name}
          </button>`,
      )}
      ${state.busy ? html`<span class="quiet" role="status">One moment: an agent finishes its call, or starts.</span>` : nothing}
    </div>
    ${refusal(state.error)}`;
}

// The time of day; with the day, if that is another one.
function moment(text) {
  const isNear = Math.abs(toMilliseconds(text) - now()) < DAY_MS / 2;
  return isNear ? clock(text) : exact(text);
}
