// The verdict: the answer in one sentence, before everything else. On call it is the first line that is read, and often the only one.

import { h } from "../lib/dom.js";
import { clear, counted } from "../lib/event.js";
import { courseOf, courseOfRow, spoken } from "../lib/state.js";
import { absolute, short } from "../lib/time.js";
import { during, termsOf } from "./changelist.js";
import { objectName } from "./columns.js";
import { localised } from "./text.js";

/** @type {Record<string, string>} */
const marks = { ongoing: "Goes on", over: "Over", once: "Once", irregular: "Irregular", usual: "As usual", unknown: "No history" };

/**
 * @param {import("../lib/state.js").State|"silent"|"irregular"} state @param {import("../lib/dom.js").Child} sentence
 */
const box = (state, sentence) => h("p", { class: "verdict " + state, "aria-label": "Verdict" }, h("span", { class: "state-mark" }, state === "silent" ? "Silent" : marks[state] ?? state), h("span", { class: "verdict-text" }, sentence));

/**
 * The verdict of an answer of changes, with links to what it names. Until the answer is there, the line has its room, so that nothing
 * moves when it comes.
 * @param {import("../app.js").App} app @param {import("../lib/load.js").Resource<any>} changes
 */
export function verdict(app, { data, stale, failure }) {
  if (!data || stale) return !failure && h("p", { class: "verdict waiting", "aria-hidden": "true" }, h("span", { class: "state-mark" }, "…"), h("span", { class: "verdict-text" }, "Compared with what is usual"));
  const v = data.verdict;
  if (!v) return null;
  if (!v.by) return box(v.state, localised(v.text));
  const range = { view: "events", event: "", from: data.range.from, to: data.range.to };
  const whose = (app.state.q !== "" && /^In [^:]+: /.exec(v.text)?.[0]) || ""; // of a search: what the sentence counts
  const text = v.text.slice(whose.length);
  const end = / of | since |:/.exec(text)?.index ?? text.length;
  const links = [
    v.cause && h("a", { key: "cause", href: app.href({ ...range, q: termsOf(v.cause) }) }, `What came before: ${clear(v.cause.by.reason ?? "")}`),
    v.former && h("a", { key: "former", href: app.href({ ...range, q: termsOf(v), ...during(v.former) }) }, "The time before"),
  ];
  return box(v.kind === "silent" ? "silent" : v.state === "once" && v.since !== v.last ? "irregular" : v.state, [whose && h("span", { class: "hint" }, whose), h("a", { href: app.href({ ...range, q: termsOf(v) }) }, clear(text.slice(0, end))), localised(text.slice(end)), links.some(Boolean) && h("span", { class: "verdict-links" }, links)]);
}

/**
 * The verdict about one object: of its warnings, or else of those below it, the one that goes on and came most often, or came last.
 * @param {any[]} series as /query/v1/object has them @param {import("../lib/event.js").Row[]} below
 */
export function verdictOfObject(series, below) {
  const own = series.map((s) => ({ ...s, object: "", course: courseOf(s) }));
  const others = together(below).map((r) => ({ reason: r.reason, type: r.type, count: r.count, object: objectName(r), course: { ...courseOfRow(r.newest, "now"), first: r.first } }));
  const some = [own, others].map((all) => all.filter((s) => s.type === "Warning")).find((all) => all.length);
  const latest = [...own, ...others].sort((a, b) => b.course.last - a.course.last)[0];
  if (!latest) return null;
  if (!some) return box("usual", [`No warnings. The last event was ${clear(latest.reason)}${latest.object && ` of ${latest.object}`}, `, moment(latest.course.last), "."]);
  const going = some.filter((s) => s.course.state === "ongoing").sort((a, b) => b.count - a.count);
  const [s, ...more] = going.length ? [...going, ...some.filter((x) => !going.includes(x))] : some.sort((a, b) => b.course.last - a.course.last);
  return box(s.course.state === "once" && s.course.last > s.course.first ? "irregular" : s.course.state, [
    h("strong", null, clear(s.reason)), s.object && ` of ${s.object}`, ` ${counted(s.count, "time")}, since `, moment(s.course.first), s.course.last > s.course.first && `, ${spoken(s.course)}`,
    more.length > 0 && `. Also ${more.slice(0, 3).map((x) => `${clear(x.reason)}${x.object && ` of ${x.object}`} ${counted(x.count, "time")}${x.course.state === "once" ? "" : ` (${spoken(x.course).split(",")[0]})`}`).join(", ")}`, ".",
  ]);
}

/**
 * Rows of which each has all events of one reason about one object. Its newest event says whether it goes on: events
 * that are far from each other have no common rhythm.
 * @param {import("../lib/event.js").Row[]} rows
 */
function together(rows) {
  /** @type {Map<string, import("../lib/event.js").Row & {newest: import("../lib/event.js").Row}>} */
  const all = new Map();
  for (const r of rows) {
    const key = [r.type, r.reason, r.namespace, objectName(r)].join(" ");
    const o = all.get(key);
    all.set(key, o ? { ...o, count: o.count + r.count, first: Math.min(o.first, r.first), time: Math.max(o.time, r.time), newest: r.time > o.time ? r : o.newest } : { ...r, newest: r });
  }
  return [...all.values()];
}

/** @param {number} at */
const moment = (at) => h("time", { title: absolute(at) }, short(at));
