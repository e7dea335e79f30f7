// The rows of an answer of changes: what is new, more, less, or began to fail.

import { h } from "../lib/dom.js";
import { clear } from "../lib/event.js";
import { writeAll } from "../lib/grammar.js";
import { courseOf, spoken } from "../lib/state.js";
import { relative, rfc3339, second, short } from "../lib/time.js";
import { lane } from "./sparkline.js";
import { bothEnds, dimmed, localised } from "./text.js";

/** @type {Record<string, string>} */
const marks = { new: "New", more: "More", again: "Again", less: "Less", silent: "Silent", failing: "Failing", changed: "Changed" };

/** Kinds of objects without a namespace. That of their events tells nothing. */
export const clusterwide = new Set(["Node", "PersistentVolume", "Namespace", "StorageClass", "APIService", "Cluster"]);

/**
 * @param {import("../app.js").App} app
 * @param {any} data an answer of /query/v1/changes
 */
export function changeList(app, data) {
  return h("ol", { class: "changes" }, data.changes.map((/** @type {any} */ c, /** @type {number} */ i) => {
    const id = c.sample && `${c.sample.metadata.namespace}/${c.sample.metadata.name}`;
    const where = clusterwide.has(c.by.kind) ? "" : c.by.namespace ?? (c.namespaces ? c.namespaces.slice(0, 3).join(", ") + (c.namespaces.length > 3 ? " …" : "") : ""); // the sentence has their number
    const first = Date.parse(c.first ?? "");
    const course = courseOf(c);
    const going = c.state === "ongoing" && c.kind !== "silent" && !Number.isNaN(first);
    const [from, to] = [Date.parse(data.range.from), Date.parse(data.range.to)];
    return h("li", { key: i },
      h("div", { class: "change-side" }, h("span", { class: "change-mark " + c.kind }, marks[c.kind] ?? c.kind), lane(course.first, course.last, from, to, c.by.type === "Normal" ? "normal" : "warning")),
      h("div", null,
        h("p", { class: "change-head" },
          h("a", { href: app.href({ view: "events", event: "", q: termsOf(c), from: c.kind === "silent" ? c.last : data.range.from, to: data.range.to }) }, clear(c.by.reason ?? (c.kind === "silent" ? "Silence" : "Warnings"))),
          c.also && h("span", { class: "hint" }, ` with ${c.also.join(", ")}`),
          h("span", { class: "change-object" }, c.kind === "silent" ? clear(silenced(c)) : dimmed(c.object || c.by.kind || "")), where && h("span", { class: "hint" }, ` in ${where}`),
          h("span", { class: "change-facts" }, c.state && c.kind !== "silent" && h("span", { class: "state " + c.state, title: `since ${short(course.first)}: ${spoken(course, to)}` }, spoken(course, to).split(",")[0], going && ` since ${short(course.first)}`),
            c.former && h("a", { class: "former", href: app.href({ view: "events", event: "", q: termsOf(c), ...during(c.former) }) }, `as ${short(Date.parse(c.former.first))}`),
            !Number.isNaN(first) && !going && h("time", { title: relative(first) }, `since ${short(first)}`),
            id && h("a", { class: "newest", href: app.href({ event: id }) }, "Newest"),
            h("button", { type: "button", class: "plain why", title: "Why it stands here", "aria-expanded": app.explained === i, onclick: () => { app.explained = app.explained === i ? -1 : i; app.redraw(); } }, "Why here"))),
        h("p", { class: "change-why", title: c.why }, localised(told(rest(c), c, app.explained === i ? Infinity : enough))),
        app.explained === i && h("p", { class: "hint statistics" }, c.statistics)));
  }));
}

/**
 * The sentence of a change without what stands above it, the reason and the object, and with the note before what came with it.
 * @param {any} c @returns {string}
 */
function rest({ why, by }) {
  const said = /; [A-Z][^;:“]*?( in \d+ namespaces)?( \(\d+ objects\))?(?=;|: “|$)/.exec(why);
  if (!said || !why.startsWith(`${by.reason} `)) return why;
  const [all, places, objects = ""] = said;
  const [more, ...note] = why.slice(said.index + all.length).split(/(?=: “)/);
  return why.slice(by.reason.length + 1, said.index) + (places ? `;${places}` : "") + objects + note.join("") + more;
}

/** So many characters of a sentence have room in a line of Changes, or in two of a card. */
const enough = 130;

/**
 * A sentence with as much of its note as there is room for, and with the end of the note.
 * @param {string} text @param {any} c @param {number} room in characters
 */
function told(text, { sample }, room) {
  const said = /“([^”]*?)…?”/.exec(text);
  if (!said || !sample?.note?.startsWith(said[1])) return text;
  return text.replace(said[0], () => `“${bothEnds(sample.note, Math.max(60, room - said.index))}”`);
}

/**
 * What is silent: the cluster, the namespace or the reporter.
 * @param {any} c
 */
export const silenced = (c) => ["cluster", "namespace", "reporter"].filter((d) => c.by[d]).map((d) => `${d} ${c.by[d]}`).join(", ") || c.object || "everything";

/**
 * The range from a first occurrence to a last one, which is within.
 * @param {{first: string, last: string}} life
 */
export const during = ({ first, last }) => ({ from: first, to: rfc3339(Date.parse(last) + second) });

/**
 * The search that finds the events of a change.
 * @param {any} c
 */
export function termsOf(c) {
  const terms = Object.entries(c.by).map(([field, value]) => ({ field, value: String(value), not: false }));
  if (c.object && !c.object.includes("*")) {
    const name = c.object.includes("/") ? c.object.slice(c.object.indexOf("/") + 1) : c.object;
    if (!name.includes(" ")) terms.push({ field: "name", value: name, not: false });
  }
  return writeAll(terms.filter((t) => t.value !== ""));
}
