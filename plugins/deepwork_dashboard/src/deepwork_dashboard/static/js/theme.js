// Light, dark, or what the system says. Only the choice is kept in the browser.

const KEY = 'deepwork.theme';
export const THEMES = ['system', 'light', 'dark'];

export function theme() {
  try {
    const stored = localStorage.getItem(KEY);
    return THEMES.includes(stored) ? stored : 'system';
  } catch {
    return 'system'; // storage may be forbidden
  }
}

export function setTheme(value) {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // then the choice holds until the page is closed
  }
  applyTheme(value);
}

export function applyTheme(value = theme()) {
  if (value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
}
