// The JSON API. Its paths are relative to the mount, which ends with a slash, as the page's own address does.

import {setServerClock, toMilliseconds} from './format.js';

export const MOUNT = new URL('.', location.href.split('#')[0]);

export class ApiError extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint;
    // The server is away or busy, so the same request may succeed later.
    this.isTemporary = status === 0 || status >= 500;
  }
}

export class SignedOut extends ApiError {}

let csrf = '';
let isOfPerson = false;
let pages = {};
let onSignedOut = () => {};

export function whenSignedOut(callback) {
  onSignedOut = callback;
}

export async function read(path) {
  return request(path, {headers: {Accept: 'application/json'}});
}

export async function act(path, body) {
  return request(path, {
    method: 'POST',
    headers: {'Content-Type': 'application/json', 'X-CSRF-Token': csrf},
    body: JSON.stringify(body),
  });
}

export async function login(token) {
  return request('login', {
    method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({token}),
  });
}

export async function logout() {
  return act('logout', {});
}

// Whether this login is a person's: a program's may look, and answers nothing.
export function isPerson() {
  return isOfPerson;
}

// The kind of a thing such as `session:ID`, its id, and the page that shows it, which is its folder in the API too.
export function parseThing(thing) {
  const [kind, ...rest] = String(thing ?? '').split(':');
  return {kind, id: rest.join(':'), page: pages[kind]};
}

// Who is logged in, and what there is to see.
export async function readViewer() {
  const answer = await read('api/session');
  csrf = answer.csrf;
  isOfPerson = answer.person;
  pages = answer.pages;
  setServerClock(toMilliseconds(answer.now));
  return answer;
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(new URL(path, MOUNT), {credentials: 'same-origin', cache: 'no-store', ...options});
  } catch {
    throw new ApiError(0, 'The server does not answer.', null);
  }
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const {message, hint} = answer?.error ?? {message: `The server answered with status ${response.status}.`, hint: null};
  if (response.status !== 401) throw new ApiError(response.status, message, hint);
  if (path !== 'login') onSignedOut();
  throw new SignedOut(401, message, hint);
}

export function liveAddress(cursor) {
  const address = new URL('live', MOUNT);
  address.protocol = address.protocol.replace('http', 'ws');
  if (cursor) address.searchParams.set('since', cursor);
  return address;
}

// The path of a list or thing with its parameters; empty ones are left out.
export function apiPath(parts, parameters = {}) {
  const chosen = Object.entries(parameters).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  );
  const query = new URLSearchParams(chosen).toString();
  return `api/${parts.map((part) => encodeURIComponent(part)).join('/')}${query ? `?${query}` : ''}`;
}
