// The state of the page is in the fragment of its address, which is sent to no server: so
// that the back button works, and a link shows the same to somebody else.

import { isRelative, parameter, parseInstant } from "./time.js";

/**
 * @typedef {object} State
 * @property {string} view
 * @property {string} q the text of the search box
 * @property {string} from RFC 3339 or relative
 * @property {string} to
 * @property {string} revision "" is the newest
 * @property {string} event namespace/name of the event in the drawer, or ""
 * @property {string} by dimension of groups
 * @property {string} order of groups, or of events
 * @property {string} kind of the object that is followed
 * @property {string} ns
 * @property {string} name
 * @property {string} uid
 * @property {string} at end of the window of changes
 * @property {string} window its length
 * @property {string} other end of the window it is compared with, or ""
 */

/** @type {State} */
const defaults = {
  view: "overview", q: "", from: "-24h", to: "now", revision: "", event: "", by: "reason", order: "",
  kind: "", ns: "", name: "", uid: "", at: "now", window: "15m", other: "",
};

/**
 * Sets the range of time that a page without one in its address shows.
 * @param {string} from @param {string} to
 */
export function begin(from, to) {
  Object.assign(defaults, { from, to, at: to });
}

/**
 * The token in a fragment, "" if there is none. Whoever opened a dump gets it with the address.
 * @param {string} fragment
 */
export function tokenIn(fragment) {
  return new URLSearchParams(fragment.split("?", 2)[1] ?? "").get("token") ?? "";
}

/** @param {string} fragment @returns {State} */
export function read(fragment) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const state = { ...defaults };
  if (path) state.view = path;
  for (const [name, value] of new URLSearchParams(query)) {
    if (name !== "view" && Object.hasOwn(defaults, name)) state[/** @type {keyof State} */ (name)] = value;
  }
  return state;
}

/**
 * The window of changes that explains the range, if that was chosen with both its ends; null if not.
 * @param {State} state @returns {Partial<State>|null}
 */
export function brushed({ from, to }) {
  const length = Math.round((parseInstant(to) - parseInstant(from)) / 1000);
  if (isRelative(from) || isRelative(to) || !(length >= 60 && length <= 31 * 86400)) return null;
  return { at: to, window: parameter(length * 1000), other: "" };
}

/**
 * The order of groups: rows of events, which the same address may sort, have others.
 * @param {State} state
 */
export const orderOfGroups = ({ order }) => (["newest", "oldest"].includes(order) ? order : "count");

/** @param {State} state */
export function write(state) {
  const query = new URLSearchParams();
  for (const name of /** @type {(keyof State)[]} */ (Object.keys(defaults))) {
    if (name !== "view" && state[name] !== defaults[name]) query.set(name, state[name]);
  }
  const text = query.toString();
  return `#/${state.view}${text ? "?" + text : ""}`;
}
