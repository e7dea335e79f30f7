// What changed before an instant: ranked against all history, or two windows side by side.

import { stepFor } from "../lib/axis.js";
import { h } from "../lib/dom.js";
import { human } from "../lib/event.js";
import { lacking, parameters, writeAll } from "../lib/grammar.js";
import { Resource } from "../lib/load.js";
import { absolute, isRelative, parseDuration, parseInstant, rfc3339, spelled, zoneName } from "../lib/time.js";
import { changeList } from "../parts/changelist.js";
import { icon } from "../parts/icons.js";
import { answered } from "../parts/message.js";
import { overlay } from "../parts/overlay.js";
import { verdict } from "../parts/verdict.js";

/** @typedef {{now: any, then: any, bars: any, line: any}} Both the facets, and the courses */
/** @typedef {{dimension: string, value: string, now: number, then: number, score: number}} Difference */

const windows = ["5m", "15m", "1h", "6h", "1d", "7d"];
const dimensions = ["reason", "kind", "namespace", "reporter", "type"];

export class Changes {
  failure = "";

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Resource<any>} */
    this.changes = new Resource(app.redraw);
    /** @type {Resource<Both>} */
    this.both = new Resource(app.redraw);
  }

  draw() {
    const { app } = this;
    const { at, window, other, ns, revision, q } = app.state;
    const namespace = ns || undefined;
    this.changes.want(`${app.turn} ${at} ${window} ${ns} ${revision} ${q}`, (signal) => app.query("changes", { at, window, namespace, ...parameters(q), limit: "50", revision }, signal));
    if (other) this.both.want(`${app.turn} ${at} ${window} ${ns} ${other} ${q}`, (signal) => this.#compare(signal));
    return [
      this.#form(),
      !other && verdict(app, this.changes),
      other ? h("section", { "aria-labelledby": "two-title" }, h("h2", { id: "two-title" }, "Two windows compared", h("button", { type: "button", class: "plain", onclick: () => app.go({ other: "" }) }, icon("close"), "Against all history")),
        answered(app, this.both, "both windows", (b) => this.#differences(b)))
        : h("section", { "aria-labelledby": "ranked-title" }, h("h2", { id: "ranked-title" }, "Most unexpected first", h("span", { class: "hint" }, this.#covered(), "against all history before")),
          answered(app, this.changes, "changes", (data) => [data.scope && h("p", { class: "hint" }, `Looked at ${data.scope}.`),
            data.changes.length ? changeList(app, data) : h("p", { class: "quiet" }, "A longer window, or an instant nearer to the incident, may show more.")])),
    ];
  }

  /** The window of the answer. */
  #covered() {
    const range = this.changes.data?.range;
    return range && !this.changes.stale && `${span(range)}, `;
  }

  #form() {
    const { app } = this;
    const { at, window, other, ns } = app.state;
    const text = (/** @type {string} */ t) => (!t || isRelative(t) ? t : absolute(parseInstant(t)));
    const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ value, /** @type {string} */ hint) =>
      h("label", null, label, h("input", { name, spellcheck: "false", autocomplete: "off", placeholder: hint, key: name + value, ref: (/** @type {HTMLInputElement} */ e) => (e.value = value) }));
    return h("form", { class: "change-form", onsubmit: (/** @type {SubmitEvent} */ e) => (e.preventDefault(), this.#show(/** @type {HTMLFormElement} */ (e.target))) },
      field("at", `Before (${zoneName()})`, text(at), "now"),
      h("label", null, "In a window of", h("select", { name: "window", value: window }, [...new Set([...windows, window])].map((w) => h("option", { value: w, key: w }, spelled(w))))),
      field("ns", "Namespace", ns, "all"),
      field("other", "Compare with, before", text(other), "all history"),
      h("button", { type: "submit", class: "primary" }, "Show"),
      h("div", { class: "choice", role: "group", "aria-label": "Compare with" }, /** @type {[string, string][]} */ ([["1d", "a day before"], ["7d", "a week before"]]).map(([d, title]) =>
        h("button", { type: "button", key: d, onclick: (/** @type {any} */ e) => this.#show(e.currentTarget.form, d) }, `Compare: ${title}`))),
      this.failure && h("p", { class: "error", role: "alert" }, this.failure));
  }

  /**
   * Shows what the form asks for, and compares it with the window so long before.
   * @param {HTMLFormElement} of @param {string} [before] a duration, instead of what the form says
   */
  #show(of, before) {
    const form = new FormData(of);
    const read = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    this.failure = "";
    const instant = (/** @type {string} */ name) => {
      const text = read(name);
      if (text === "" || isRelative(text)) return text;
      const at = parseInstant(text);
      if (Number.isNaN(at)) this.failure = `“${text}” is no time. Write it as 2026-03-04 12:00, 4.3.2026 12:00, 2:30pm or -6h.`;
      return Number.isNaN(at) ? "" : rfc3339(at);
    };
    const at = instant("at") || "now";
    const next = { at, window: read("window"), ns: read("ns"), other: before ? rfc3339(parseInstant(at) - parseDuration(before)) : instant("other") };
    if (this.failure) this.app.redraw();
    else this.app.go(next);
  }

  /** @param {AbortSignal} signal @returns {Promise<Both>} */
  async #compare(signal) {
    const { app } = this;
    const { at, window, other, ns } = app.state;
    const length = parseDuration(window);
    const facets = (/** @type {string} */ end) => {
      const to = parseInstant(end);
      return app.query("facets", { from: rfc3339(to - length), to: rfc3339(to), namespace: ns || undefined, ...parameters(app.state.q), by: dimensions.join(","), limit: "1000" }, signal);
    };
    const course = (/** @type {string} */ end) => {
      const to = parseInstant(end);
      return app.query("histogram", { from: rfc3339(to - length), to: rfc3339(to), namespace: ns || undefined, ...parameters(app.state.q), step: stepFor(length, 60) }, signal);
    };
    const [now, then, bars, line] = await Promise.all([facets(at), facets(other), course(at), course(other)]);
    return { now, then, bars, line };
  }

  /** @param {Both} both */
  #differences({ now, then, bars, line }) {
    const { app } = this;
    const list = differ(now, then).slice(0, 60);
    const most = Math.max(1, ...list.map((d) => Math.max(d.now, d.then)));
    const bar = (/** @type {number} */ n, /** @type {string} */ kind, /** @type {string} */ window) => h("td", { class: "two-count", "data-window": window }, h("span", { class: "pair" }, h("span", { class: "pair-bar " + kind, css: { width: `${(n / most) * 100}%` } }), h("span", { class: "n" }, human(n))));
    return [
      h("p", { class: "summary" }, `${human(now.total)} occurrences in ${spelled(app.state.window)}, ${human(then.total)} in the other window.`),
      overlay(bars, line, [span(now.range), span(then.range)]),
      list.length === 0 ? h("p", { class: "quiet" }, "The two windows do not differ.") : h("div", { class: "scroll-x" }, h("table", { class: "two", "aria-label": "Differences" },
        h("thead", null, h("tr", null, ["Field", "Value", span(now.range), span(then.range), "Difference"].map((t) => h("th", { scope: "col", key: t }, t)))),
        h("tbody", null, list.map((d) => h("tr", { key: d.dimension + d.value },
          h("td", { class: "hint" }, d.dimension), h("th", { scope: "row" }, h("a", {
            href: app.href({ view: "events", q: writeAll([{ field: d.dimension, value: d.value, not: false }, { field: "namespace", value: app.state.ns, not: false }].filter((t) => t.value)), from: now.range.from, to: now.range.to }),
          }, d.value || lacking(d.dimension))),
          bar(d.now, "now", "this"), bar(d.then, "then", "other"),
          h("td", { class: d.now > d.then ? "up" : "down" }, d.then === 0 ? "only here" : d.now === 0 ? "only there" : percent(d.now, d.then))))))),
      h("p", { class: "hint" }, `Both windows are ${spelled(app.state.window)} long. The values whose counts differ most surprisingly stand first.`),
    ];
  }

  leave() {
    this.changes.stop();
    this.both.stop();
  }
}

/**
 * A range, with its second date only if that is another one.
 * @param {{from: string, to: string}} range
 */
function span(range) {
  const [from, to] = [absolute(Date.parse(range.from)), absolute(Date.parse(range.to))];
  return `${from} – ${to.slice(from.slice(0, 10) === to.slice(0, 10) ? 11 : 0)}`;
}

/**
 * By how much a count differs from another one.
 * @param {number} now @param {number} then
 */
function percent(now, then) {
  const n = Math.round((now / then - 1) * 100);
  return n > 900 ? `${human(Math.round(now / then))}×` : `${n < 0 ? "−" : "+"}${Math.abs(n)} %`;
}

/**
 * The values whose counts differ, the most surprising first, by Dunning's G².
 * @param {any} now @param {any} then @returns {Difference[]}
 */
function differ(now, then) {
  /** @type {Difference[]} */
  const out = [];
  for (const dimension of dimensions) {
    const before = new Map((then.facets[dimension] ?? []).map((/** @type {any} */ v) => [v.value, v.count]));
    const after = new Map((now.facets[dimension] ?? []).map((/** @type {any} */ v) => [v.value, v.count]));
    for (const value of new Set([...before.keys(), ...after.keys()])) {
      const [a, b] = [after.get(value) ?? 0, before.get(value) ?? 0];
      const mean = (a + b) / 2;
      const g = 2 * ((a ? a * Math.log(a / mean) : 0) + (b ? b * Math.log(b / mean) : 0));
      if (g > 0.5) out.push({ dimension, value, now: a, then: b, score: g });
    }
  }
  return out.sort((x, y) => y.score - x.score);
}
