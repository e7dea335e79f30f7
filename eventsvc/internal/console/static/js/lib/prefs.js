// Preferences of this browser: appearance only, never who somebody is or what they looked
// for.

/** @type {{theme: "system"|"dark"|"light", zone: "local"|"utc", columns: string[], lines: number, widths: Record<string, number>, facets: boolean, keys: boolean}} */
const defaults = { theme: "system", zone: "local", columns: ["time", "reason", "note", "object", "namespace", "count"], lines: 3, widths: {}, facets: true, keys: true };

const key = "tidings.preferences";

/** @returns {typeof defaults} */
function load() {
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "{}");
    return {
      theme: ["system", "dark", "light"].includes(stored.theme) ? stored.theme : defaults.theme,
      zone: stored.zone === "utc" ? "utc" : "local",
      columns: Array.isArray(stored.columns) && stored.columns.every((/** @type {unknown} */ c) => typeof c === "string") ? stored.columns : defaults.columns,
      lines: [1, 3, 99].includes(stored.lines) ? stored.lines : defaults.lines,
      widths: Object.fromEntries(Object.entries(stored.widths ?? {}).filter(([, w]) => typeof w === "number" && w > 0)),
      facets: stored.facets !== false,
      keys: stored.keys !== false,
    };
  } catch {
    return { ...defaults }; // storage may be forbidden, or somebody else's
  }
}

export const prefs = load();

/**
 * Sets a preference and keeps it.
 * @template {keyof typeof defaults} K @param {K} name @param {(typeof defaults)[K]} value
 */
export function prefer(name, value) {
  prefs[name] = value;
  try {
    localStorage.setItem(key, JSON.stringify(prefs));
  } catch {
    // It holds for this tab, then.
  }
}
