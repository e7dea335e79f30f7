// What is seen as a file: CSV for a spreadsheet, or JSON, page by page and bounded.

import { orderOfGroups } from "./address.js";
import { url } from "./api.js";
import { parameters } from "./grammar.js";

const most = 20_000; // rows of a file
const page = 1000;

/**
 * Saves what the present view shows.
 * @param {import("../app.js").App} app @param {"csv"|"json"} form
 */
export async function takeAway(app, form) {
  const { what } = asked(app);
  const name = `${what}.${form}`;
  app.say("Saving …");
  try {
    const { parts, rows, cut } = form === "csv" ? await csv(app) : await json(app);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type: form === "csv" ? "text/csv" : "application/json" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    app.say(cut ? `The first ${rows.toLocaleString("en")} ${what} are in ${name}. There are more: narrow the search or the range.` : `${name} has all of them.`);
  } catch (err) {
    app.say(`Nothing was saved: ${err instanceof Error ? err.message : err}`);
  }
}

/**
 * The question behind what a view shows.
 * @param {import("../app.js").App} app
 * @returns {{endpoint: string, params: Record<string, string|undefined>, list: "items"|"groups"|"changes", what: string}}
 */
export function asked(app) {
  const { state } = app;
  const { view, q, revision } = state;
  if (view === "groups") return { endpoint: "groups", params: { ...app.question(), by: state.by, order: orderOfGroups(state) }, list: "groups", what: "groups" };
  if (view === "changes") return { endpoint: "changes", params: { at: state.at, window: state.window, namespace: state.ns || undefined, ...parameters(q), limit: "100", revision }, list: "changes", what: "changes" };
  if (view === "object") return { endpoint: "object", params: { ...subject(state), order: "newest", revision }, list: "items", what: "observations" };
  return { endpoint: "events", params: { ...app.question(), order: view === "events" && state.order === "oldest" ? "oldest" : undefined }, list: "items", what: "events" };
}

/**
 * The parameters that name the object which is followed.
 * @param {{kind: string, name: string, ns: string, uid: string}} state @returns {Record<string, string>}
 */
export const subject = (state) => (state.uid ? { uid: state.uid } : { kind: state.kind, name: state.name, namespace: state.ns });

/** @param {import("../app.js").App} app @param {string} next */
function path(app, next) {
  const { endpoint, params } = asked(app);
  return url("/query/v1/" + endpoint, { limit: String(page), formulas: "escape", ...params, continue: next });
}

/** @param {import("../app.js").App} app */
async function csv(app) {
  /** @type {string[]} */
  const parts = [];
  let next = "";
  for (let rows = 0; rows < most; rows += page) {
    const response = await app.api.fetch(path(app, next), undefined, "text/csv");
    const text = await response.text();
    parts.push(next ? text.slice(text.indexOf("\n") + 1) : text); // one header is enough
    next = decodeURIComponent(/[?&]continue=([^&>]+)/.exec(response.headers.get("Link") ?? "")?.[1] ?? "");
    if (!next) return { parts, rows, cut: false };
  }
  return { parts, rows: most, cut: true };
}

/** @param {import("../app.js").App} app */
async function json(app) {
  const { endpoint, list } = asked(app);
  const items = [];
  let next = "";
  do {
    const answer = await app.api.get(path(app, next));
    items.push(...answer[list]);
    next = answer.continue ?? "";
  } while (next && items.length < most);
  return { parts: [JSON.stringify(endpoint === "events" ? { kind: "List", apiVersion: "v1", items } : { [list]: items }, null, 1)], rows: items.length, cut: next !== "" };
}
