// Words for times, durations, amounts and long texts. Pure functions.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// The server's clock minus ours: what is told as "3 s ago" must not depend on this machine's clock.
let clockOffset = 0;

export function setServerClock(milliseconds) {
  clockOffset = milliseconds - Date.now();
}

export function now() {
  return Date.now() + clockOffset;
}

// Milliseconds of what the API calls a time: ISO 8601, or milliseconds since 1970. NaN if there is none.
export function toMilliseconds(time) {
  return typeof time === 'number' ? time : Date.parse(time ?? '');
}

export function duration(milliseconds) {
  if (!Number.isFinite(milliseconds)) return '–';
  const length = Math.max(0, milliseconds);
  if (length < SECOND) return '< 1 s';
  if (length < MINUTE) return `${Math.floor(length / SECOND)} s`;
  if (length < HOUR) return pair(length, MINUTE, 'min', SECOND, 's', 10);
  if (length < DAY) return pair(length, HOUR, 'h', MINUTE, 'min', 24);
  return pair(length, DAY, 'd', HOUR, 'h', 14);
}

// "2 h 5 min"; the second part is left out once the first is large enough to stand alone.
function pair(length, large, largeWord, small, smallWord, alone) {
  const count = Math.floor(length / large);
  const rest = Math.floor((length % large) / small);
  return rest && count < alone ? `${count} ${largeWord} ${rest} ${smallWord}` : `${count} ${largeWord}`;
}

export function relative(time) {
  const at = toMilliseconds(time);
  if (!Number.isFinite(at)) return '–';
  const age = now() - at;
  if (Math.abs(age) < 5 * SECOND) return 'just now';
  const words = coarse(Math.abs(age));
  return age >= 0 ? `${words} ago` : `in ${words}`;
}

function coarse(length) {
  if (length < MINUTE) return `${Math.floor(length / SECOND)} s`;
  if (length < HOUR) return `${Math.floor(length / MINUTE)} min`;
  if (length < DAY) return `${Math.floor(length / HOUR)} h`;
  return `${Math.floor(length / DAY)} d`;
}

// How long nobody has been at work, in words; nothing before an agent has made no call for five minutes, or has gone.
export function quietFor(lastCallAt, goneAt = null) {
  if (goneAt) return coarse(now() - toMilliseconds(goneAt));
  const age = now() - toMilliseconds(lastCallAt);
  return age >= 5 * MINUTE ? coarse(age) : '';
}

const EXACT = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});
const CLOCK = new Intl.DateTimeFormat(undefined, {timeStyle: 'medium'});

export function exact(time) {
  const at = toMilliseconds(time);
  return Number.isFinite(at) ? EXACT.format(at) : '';
}

export function clock(time) {
  const at = toMilliseconds(time);
  return Number.isFinite(at) ? CLOCK.format(at) : '';
}

export function isoTime(time) {
  const at = toMilliseconds(time);
  return Number.isFinite(at) ? new Date(at).toISOString() : '';
}

const NUMBER = new Intl.NumberFormat('en-US');
const SHORT = new Intl.NumberFormat('en-US', {notation: 'compact', maximumFractionDigits: 1});

export function number(value) {
  return value === null || value === undefined ? '–' : NUMBER.format(value);
}

export function short(value) {
  return value === null || value === undefined ? '–' : SHORT.format(value);
}

export function money(dollars) {
  if (dollars === null || dollars === undefined) return '–';
  return `$${dollars >= 100 ? NUMBER.format(Math.round(dollars)) : dollars.toFixed(2)}`;
}

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

export function plural(count, word, words = `${word}s`) {
  return `${number(count)} ${count === 1 ? word : words}`;
}

// `needs_work` as "Needs work".
export function words(identifier) {
  const text = String(identifier ?? '')
    .replaceAll('_', ' ')
    .toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Ids are long; their beginning tells them apart on a page.
export function shortId(id) {
  return /^[0-9a-f]{32}$/.test(id) ? id.slice(0, 8) : id;
}
