// The overview: what happened in the range, of what, and what is new.

import { h } from "../lib/dom.js";
import { clear, row } from "../lib/event.js";
import * as grammar from "../lib/grammar.js";
import { Resource } from "../lib/load.js";
import { Search } from "../lib/search.js";
import { absolute, day, hour, minute, parameter, relative, rfc3339, short, spelled } from "../lib/time.js";
import { changeList, clusterwide } from "../parts/changelist.js";
import { Clusters } from "../parts/clusters.js";
import { objectName, series } from "../parts/columns.js";
import { Facets, facetsShown } from "../parts/facets.js";
import { Histogram } from "../parts/histogram.js";
import { answered, nothing } from "../parts/message.js";
import { lane } from "../parts/sparkline.js";
import { bothEnds, dimmed } from "../parts/text.js";
import { verdict } from "../parts/verdict.js";

const windows = [minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 3 * day, 7 * day, 14 * day, 30 * day];

/** So many changes are shown. Rows of what was changed, among them, do not count. */
const most = 8;

/** @param {any[]} changes */
function first(changes) {
  let n = 0;
  return changes.filter((c) => (c.kind === "changed" ? n < most : n++ < most));
}

export class Overview {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.search = new Search(app, 1); // whose events are those of the newest warnings
    this.histogram = new Histogram(app, this.search, 120);
    this.facets = new Facets(app, this.search);
    this.clusters = new Clusters(app);
    /** @type {Resource<any>} */
    this.warnings = new Resource(app.redraw);
    /** @type {Resource<any>} */
    this.changes = new Resource(app.redraw);
  }

  draw() {
    const { app } = this;
    const histogram = this.histogram.draw(); // asks first: its answer says of which moment the others are
    this.#ask();
    const counted = this.search.answer.data;
    const wide = h("div", { class: "wide" }, // says what is wrong, before the facets might
      counted?.total !== 0 && verdict(app, this.changes),
      histogram,
      this.search.answer.failure && !counted ? null : counted && counted.total === 0 && !this.search.answer.loading ? nothing(app, counted) : h("div", { class: "panels" },
        h("section", { class: "panel-box", "aria-labelledby": "new-title" }, h("h2", { id: "new-title" }, "What is new", this.#windowText()), answered(app, this.changes, "changes", (data) =>
          data.changes.length ? changeList(app, { ...data, changes: first(data.changes) }) : h("p", { class: "quiet" }, data.verdict?.text))),
        h("section", { class: "panel-box", "aria-labelledby": "warnings-title" }, h("h2", { id: "warnings-title" }, "Newest warnings",
          h("a", { class: "all", href: app.href({ view: "groups", by: "pattern", order: "", q: grammar.add(app.state.q, { field: "type", value: "Warning", not: false }) }) }, "Top messages"),
          h("a", { class: "all", href: app.href({ view: "events", q: grammar.add(app.state.q, { field: "type", value: "Warning", not: false }) }) }, "All of them")),
          answered(app, this.warnings, "warnings", (data) => this.#warnings(data)))),
      this.clusters.draw(), // which come when they like, below what would move
      this.#history());
    return h("div", { class: "with-facets" }, h("div", { class: "side" }, facetsShown(app) && this.facets.draw()), wide);
  }

  #ask() {
    const { app } = this;
    const only = grammar.parameters(grammar.add(app.state.q, { field: "type", value: "Warning", not: false }));
    this.warnings.want(app.key("warnings"), (signal) => app.query("events", { ...app.question(), ...only, limit: "60" }, signal));
    const window = this.#window();
    if (!window) return; // the histogram's answer says how far back history goes
    this.changes.want(app.key("changes"), (signal) => app.query("changes", { at: app.state.to, window: parameter(window), ...grammar.parameters(app.state.q), limit: "50", revision: app.state.revision }, signal));
  }

  /**
   * The window in which changes are looked for: the range, or its last part where history
   * before it would be too short to compare with. 0 as long as that is not known.
   */
  #window() {
    const history = Date.parse(this.search.answer.data?.historyFrom ?? "");
    if (Number.isNaN(history)) return 0;
    const [from, to] = this.app.range();
    const length = from - history > to - from ? to - from : Math.min(to - from, (to - history) / 4);
    return Math.max(minute, ...windows.filter((w) => w <= length));
  }

  #windowText() {
    const window = this.#window();
    return window > 0 && h("span", { class: "hint" }, ` in the last ${spelled(parameter(window)).replace(/^1 /, "")}${this.app.state.to === "now" ? "" : " of the range"}, against all history before${this.app.state.q && ", in all events that the search touches"}`);
  }

  /** @param {any} data */
  #warnings(data) {
    const { app } = this;
    if (!data.items.length) return h("p", { class: "quiet" }, "No warnings in this range.");
    /** @type {Map<string, {r: import("../lib/event.js").Row, more: number}>} */
    const kinds = new Map(); // of one reason in one namespace, the newest stands for all
    for (const r of data.items.map(row)) {
      const known = kinds.get(`${r.reason} ${r.namespace} ${r.kind}`);
      if (known) known.more++;
      else kinds.set(`${r.reason} ${r.namespace} ${r.kind}`, { r, more: 0 });
    }
    return h("ul", { class: "brief" }, [...kinds.values()].slice(0, 12).map(({ r, more }) =>
      h("li", { key: r.id }, h("a", { href: this.app.href({ event: r.id }), "data-row": r.id, class: `${this.app.state.event === r.id ? "open" : ""}${this.app.isNew(r.revision) ? " new" : ""}` },
        h("span", { class: "brief-head" }, h("strong", null, clear(r.reason)), h("span", { class: "brief-object" }, objectName(r), r.namespace && !clusterwide.has(r.kind) && h("span", { class: "hint" }, ` in ${r.namespace}`)), series(r, true), lane(r.first, r.time, ...app.range(), "warning"), h("time", { title: absolute(r.time) }, relative(r.time))),
        h("span", { class: "brief-note", title: r.note }, dimmed(bothEnds(r.note, 120)))),
        more > 0 && h("a", { class: "brief-more", href: this.app.href({ view: "events", q: this.#alike(r) }) }, `${more} more ${more === 1 ? "event" : "events"} of ${r.reason} in ${r.namespace}`))));
  }

  /**
   * The search for warnings like one.
   * @param {import("../lib/event.js").Row} r
   */
  #alike(r) {
    /** @type {grammar.Term[]} */
    const terms = Object.entries({ type: r.type, reason: r.reason, namespace: r.namespace, kind: r.kind }).map(([field, value]) => ({ field, value, not: false }));
    return terms.reduce(grammar.add, this.app.state.q);
  }

  #history() {
    const from = Date.parse(this.search.answer.data?.historyFrom ?? "");
    if (Number.isNaN(from)) return null;
    const { namespaces, clusters } = this.search.answer.data ?? /** @type {any} */ ({});
    return h("p", { class: "history" }, "History goes back to ", h("a", { href: this.app.href({ from: rfc3339(from), to: "now", revision: "" }), title: absolute(from) }, short(from)), `, ${relative(from)}.`,
      namespaces && !grammar.namespaceOf(grammar.parse(this.app.state.q)) && ` You see the namespaces ${namespaces.join(", ")}.`, clusters && ` You see the clusters ${clusters.map((/** @type {string} */ c) => c || `one ${grammar.lacking("cluster")}`).join(", ")}.`);
  }

  leave() {
    this.histogram.stop();
    for (const r of [this.facets.found, this.facets.more, this.warnings, this.changes]) r.stop();
  }
}
