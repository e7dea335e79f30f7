// What is said in place of an answer: why there is none, and what to do.

import { h } from "../lib/dom.js";
import { isRelative, parseInstant, relative, short, spelled } from "../lib/time.js";
import { icon } from "./icons.js";

/** @typedef {import("../app.js").App} App @typedef {import("../lib/api.js").Failure} Failure */

/** @type {Record<import("../lib/api.js").Kind, string>} */
const titles = {
  expired: "Nobody is signed in", forbidden: "This token may not see that", invalid: "The question is not understood",
  missing: "This is not there", gone: "That state is no longer held", busy: "The server is busy",
  unreachable: "The server cannot be reached", failed: "The server could not answer",
  foreign: "Something else has answered",
};

/** @type {Record<import("../lib/api.js").Kind, string>} */
const advice = {
  expired: "Sign in to go on.",
  forbidden: "Search for a namespace that you may see (namespace:NAME), or ask who keeps the policy for the right to list events there.",
  invalid: "Change the search or the range.", missing: "It may have been deleted, or have expired.",
  gone: "Show the newest state instead.", busy: "Wait a moment, then ask again. A shorter range asks less.",
  unreachable: "Look whether it runs, and whether this machine is connected. Then ask again. If a proxy before it asks people to sign in, reload this page.",
  failed: "Ask again. Its log says more.", foreign: "A proxy before the server probably asks you to sign in: reload this page.",
};

/**
 * Whether a failure says more than its title.
 * @param {Failure} failure
 */
const said = (failure) => failure.message.toLowerCase() !== titles[failure.kind].toLowerCase();

/**
 * Says why there is no answer.
 * @param {App} app @param {Failure} failure
 */
export function failed(app, failure) {
  if (app.told.has(failure.kind)) return null; // above
  app.told.add(failure.kind);
  if (failure.kind === "expired" && !app.session.open) return h("p", { class: "quiet" }, "Sign in to see events.");
  if (/range ends before history begins/.test(failure.message)) return beforeHistory(app, failure);
  const again = () => (failure.kind === "gone" ? app.go({ revision: "" }) : app.refresh());
  return h("div", { class: "message", role: failure.kind === "expired" ? "note" : "alert", "data-kind": failure.kind },
    h("h2", null, icon("alert"), titles[failure.kind]), said(failure) && h("p", { class: "why" }, failure.message), h("p", null, advice[failure.kind]),
    failure.kind === "forbidden" && app.seen().length > 0 && h("p", null, "You may see ", app.seen().map((name, i) => [i > 0 && ", ",
      name.includes("*") ? name : h("a", { href: app.href({ view: "events", q: `namespace:${name}`, ns: "", event: "" }) }, name)]), "."),
    failure.kind !== "expired" && failure.kind !== "invalid" && h("button", { type: "button", onclick: again }, failure.kind === "gone" ? "Show the newest state" : "Ask again"));
}

/**
 * Says that a range is older than what is held.
 * @param {App} app @param {Failure} failure
 */
function beforeHistory(app, failure) {
  const begin = /at (\S+)$/.exec(failure.message)?.[1] ?? "";
  return h("div", { class: "message", "data-kind": "empty" }, h("h2", null, "Before history"), h("p", { class: "why" }, `What happened before ${short(Date.parse(begin))} is not held.`),
    h("button", { type: "button", onclick: () => app.go({ from: begin, to: "now", revision: "" }) }, "Look at all of history"));
}

/**
 * Says above an answer that it is an old one, as a newer one could not be had.
 * @param {App} app @param {Failure} failure
 */
export function outdated(app, failure) {
  if (app.told.has(failure.kind)) return null;
  app.told.add(failure.kind);
  return h("p", { class: "note warn", role: "alert", "data-kind": failure.kind }, icon("alert"),
    h("span", null, `${titles[failure.kind]}${said(failure) ? `: ${failure.message.replace(/\.$/, "")}` : ""}. What you see is the last answer.`),
    failure.kind !== "expired" && h("button", { type: "button", class: "plain", onclick: () => app.refresh() }, "Ask again"));
}

/**
 * Says that nothing was found, and why that may be.
 * @param {App} app @param {any} [head]
 */
export function nothing(app, head) {
  const { q, from, to } = app.state;
  const history = head?.historyFrom ? Date.parse(head.historyFrom) : NaN;
  const range = isRelative(from) && to === "now" ? `in the last ${spelled(from)}` : `from ${short(parseInstant(from))} to ${to === "now" ? "now" : short(parseInstant(to))}`;
  const young = history > parseInstant(from) && !q;
  return h("div", { class: "message", "data-kind": "empty" },
    h("h2", null, "No events"),
    h("p", { class: "why" }, young ? `Nothing has been recorded since history began, ${relative(history)}.` : q ? `None matches the search ${range}.` : `None was observed ${range}.`,
      head?.hints?.map((/** @type {string} */ hint) => ` ${hint}.`),
      !young && history > 0 && ` History goes back to ${short(history)}, ${relative(history)}.`),
    h("p", { class: "actions" }, q !== "" && h("button", { type: "button", onclick: () => app.go({ q: "" }) }, "Remove the search"),
      h("button", { type: "button", onclick: () => app.go({ from: history > 0 ? new Date(history).toISOString().slice(0, 19) + "Z" : "-7d", to: "now", revision: "" }) }, "Look at all of history")));
}

/**
 * What is shown until the first answer is there.
 * @param {string} what @param {number} [lines]
 */
export function loading(what, lines = 6) {
  return h("div", { class: "loading", role: "status", "aria-label": `Loading ${what}` }, Array.from({ length: lines }, (_, i) => h("div", { class: "bone", key: i })));
}

/**
 * What an answer says is missing from it.
 * @param {any} head
 */
export function partial(head) {
  // That history begins within the range is seen in the histogram.
  if (!head?.partial || /^history begins at \S+$/.test(head.partialReason)) return null;
  return h("p", { class: "note", role: "note" }, icon("alert"), `This answer is not complete: ${head.partialReason}.`);
}

/**
 * What a resource has: its answer, why there is none, or that it is on its way.
 * @template T
 * @param {App} app @param {import("../lib/load.js").Resource<T>} resource @param {string} what @param {(data: T) => import("../lib/dom.js").Child} show
 * @returns {import("../lib/dom.js").Child}
 */
export function answered(app, resource, what, show) {
  if (resource.data === undefined) return resource.failure && !resource.loading ? failed(app, resource.failure) : loading(what);
  return h("div", { class: `answer${resource.stale ? " stale" : ""}${resource.foreign ? " foreign" : ""}`, "aria-busy": resource.loading },
    resource.failure && !resource.loading && outdated(app, resource.failure), partial(resource.data), show(resource.data));
}
