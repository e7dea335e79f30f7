// Recent and saved searches. They are stored in this browser only.

const key = "tidings.searches";
const most = 12;

/**
 * A saved search: its name, and the fragment of its address.
 * @typedef {{name: string, to: string}} Saved
 */

/** @returns {{recent: string[], saved: Saved[]}} */
function load() {
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "{}");
    const text = (/** @type {unknown} */ t) => typeof t === "string";
    return {
      recent: (Array.isArray(stored.recent) ? stored.recent : []).filter(text).slice(0, most),
      saved: (Array.isArray(stored.saved) ? stored.saved : []).filter((/** @type {any} */ s) => text(s?.name) && text(s?.to) && s.to.startsWith("#/")),
    };
  } catch {
    return { recent: [], saved: [] }; // storage may be forbidden, or have a value of another program
  }
}

export const searches = load();

function keep() {
  try {
    if (searches.recent.length || searches.saved.length) localStorage.setItem(key, JSON.stringify(searches));
    else localStorage.removeItem(key);
  } catch {
    // The searches last as long as this tab, then.
  }
}

/**
 * Remembers the text of a search, the newest first.
 * @param {string} q
 */
export function remember(q) {
  if (!q || q === searches.recent[0]) return;
  searches.recent = [q, ...searches.recent.filter((r) => r !== q)].slice(0, most);
  keep();
}

/** Forgets what was searched for, but not what was saved. */
export function forgetRecent() {
  searches.recent = [];
  keep();
}

/** @param {Saved} s */
export function save(s) {
  searches.saved = [...searches.saved.filter((o) => o.name !== s.name), s].sort((a, b) => a.name.localeCompare(b.name));
  keep();
}

/** @param {Saved} s */
export function unsave(s) {
  searches.saved = searches.saved.filter((o) => o !== s);
  keep();
}
