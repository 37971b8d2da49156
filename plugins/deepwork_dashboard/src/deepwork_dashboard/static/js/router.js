// The address is the state of the page: `#/sessions/ID?step=draft`. Whatever is chosen stands in it, so it can be shared.

export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  const parts = path.split('/').filter(Boolean).map(decode);
  return {parts, query: new URLSearchParams(query)};
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function href(parts, query = {}) {
  const path = parts.map((part) => encodeURIComponent(part)).join('/');
  const chosen = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = new URLSearchParams(chosen.map(([key, value]) => [key, String(value)])).toString();
  return `#/${path}${text ? `?${text}` : ''}`;
}

// What a page was called in the release before; bookmarks and messages still lead there.
const FORMER = {runs: 'sessions'};

export function renameFormer() {
  const {parts, query} = current();
  if (FORMER[parts[0]])
    history.replaceState(null, '', href([FORMER[parts[0]], ...parts.slice(1)], Object.fromEntries(query)));
}

export function current() {
  return parse(location.hash);
}

export function go(address) {
  location.hash = address;
}

// Go to an address in the place of this one, to which nobody wants to go back.
export function replace(address) {
  history.replaceState(null, '', address);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

// Change a part of the query and keep the rest. It replaces the address: a filter is no page to go back to.
export function setQuery(changes) {
  const {parts, query} = current();
  replace(href(parts, {...Object.fromEntries(query), ...changes}));
}

// The address with a part of its query changed.
export function withQuery(changes) {
  const {parts, query} = current();
  return href(parts, {...Object.fromEntries(query), ...changes});
}
