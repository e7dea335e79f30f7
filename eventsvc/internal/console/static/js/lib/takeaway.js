// What is seen as a file: CSV for a spreadsheet, or JSON, page by page and bounded.

import { url } from "./api.js";

const most = 20_000; // rows of a file
const page = 1000;

/**
 * Saves the events of the present question.
 * @param {import("../app.js").App} app @param {"csv"|"json"} form
 */
export async function takeAway(app, form) {
  app.say("Saving …");
  try {
    const { parts, rows, cut } = form === "csv" ? await csv(app) : await json(app);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type: form === "csv" ? "text/csv" : "application/json" }));
    link.download = `events.${form}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    app.say(cut ? `The newest ${rows.toLocaleString("en")} events are in events.${form}. There are more: narrow the search or the range.` : `events.${form} has all of them.`);
  } catch (err) {
    app.say(`Nothing was saved: ${err instanceof Error ? err.message : err}`);
  }
}

/** @param {import("../app.js").App} app @param {Record<string, string|undefined>} more */
const path = (app, more) => url("/query/v1/events", { ...app.question(), limit: String(page), ...more });

/** @param {import("../app.js").App} app */
async function csv(app) {
  /** @type {string[]} */
  const parts = [];
  let next = "";
  for (let rows = 0; rows < most; rows += page) {
    const response = await app.api.fetch(path(app, { formulas: "escape", continue: next }), undefined, "text/csv");
    const text = await response.text();
    parts.push(next ? text.slice(text.indexOf("\n") + 1) : text); // one header is enough
    next = decodeURIComponent(/[?&]continue=([^&>]+)/.exec(response.headers.get("Link") ?? "")?.[1] ?? "");
    if (!next) return { parts, rows, cut: false };
  }
  return { parts, rows: most, cut: true };
}

/** @param {import("../app.js").App} app */
async function json(app) {
  const items = [];
  let next = "";
  do {
    const answer = await app.api.get(path(app, { continue: next }));
    items.push(...answer.items);
    next = answer.continue ?? "";
  } while (next && items.length < most);
  return { parts: [JSON.stringify({ kind: "List", apiVersion: "v1", items }, null, 1)], rows: items.length, cut: next !== "" };
}
