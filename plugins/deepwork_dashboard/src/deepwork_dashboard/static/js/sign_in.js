// Shown to whoever is not logged in, and when the login has ended: how to come back.

import {html} from '../vendor/lit-html/lit-html.js';
import {refusal} from './acting.js';
import {copyable} from './parts.js';

export function signIn({error, wasLoggedIn}, enter) {
  const submit = (event) => {
    event.preventDefault();
    const field = event.target.elements.token;
    // A whole address is as good as the token in it.
    const token = field.value.trim().replace(/^.*#token=/, '');
    field.value = '';
    if (token) enter(token);
  };
  const isAway = error && error.status !== 401;
  return html`<main class="sign-in" id="main">
    <div class="card">
      <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" />
        <path d="M9 10h8a6 6 0 0 1 0 12H9z" />
        <circle cx="25" cy="9" r="3" />
      </svg>
      <h1>${isAway ? 'The server does not answer' : wasLoggedIn ? 'Your login has ended' : 'Log in'}</h1>
      ${refusal(error)}
      ${
        isAway
          ? html`<p><button type="button" class="button primary" @click=${() => enter('')}>Try again</button></p>`
          : html` <p>
                ${wasLoggedIn ? 'The dashboard was started anew, or was not used for 12 hours. ' : ''}Open the address
                that the terminal shows when the dashboard starts: it has a token in it. Or let the dashboard open the
                browser:
              </p>
              <p>${copyable('deepwork dashboard --open', {label: 'Copy the command'})}</p>
              <form @submit=${submit}>
                <label for="token">Or paste the token, or the whole address</label>
                <div class="row">
                  <input id="token" name="token" type="password" autocomplete="off" required /><button
                    class="button primary"
                  >
                    Log in
                  </button>
                </div>
              </form>`
      }
    </div>
  </main>`;
}
