// Groups: events put together by one dimension, with count, first, last and course.

import { orderOfGroups } from "../lib/address.js";
import { spread, stepFor } from "../lib/axis.js";
import { h } from "../lib/dom.js";
import { clear, counted, human } from "../lib/event.js";
import * as grammar from "../lib/grammar.js";
import { Resource } from "../lib/load.js";
import { Pager } from "../lib/pager.js";
import { courseOf, spoken } from "../lib/state.js";
import { absolute, clock, relative, short } from "../lib/time.js";
import { choose } from "../parts/choose.js";
import { objectName } from "../parts/columns.js";
import { failed, loading, nothing, partial } from "../parts/message.js";
import { sparkline } from "../parts/sparkline.js";
import { lifeOf } from "../parts/table.js";
import { patterned } from "../parts/text.js";

/** @typedef {{by: Record<string, any>, count: number, first: string, last: string, every?: number, state?: string, sample?: any}} Group */

const dimensions = ["reason", "pattern", "object", "node", "owner", "namespace", "kind", "reporter", "cluster"];
/** @param {string} dimension */
const titled = (dimension) => (dimension === "pattern" ? "Message pattern" : dimension[0].toUpperCase() + dimension.slice(1));
const orders = /** @type {[string, string][]} */ ([["", "Most frequent"], ["newest", "Newest"], ["oldest", "Oldest"]]);
const bars = 40;

export class Groups {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Pager<Group>} */
    this.pager = new Pager(app.redraw, (answer) => answer.groups);
    /** @type {Resource<any>} */
    this.course = new Resource(app.redraw);
    /**
     * Courses of objects, which have to be asked for one by one.
     * @type {Map<string, number[]|null>}
     */
    this.courses = new Map();
    this.#control = new AbortController();
    this.#key = "";
  }

  /** @type {AbortController} */
  #control;
  #key;
  #running = 0;

  draw() {
    const { app, pager } = this;
    const by = dimensions.includes(app.state.by) ? app.state.by : "reason";
    const order = orderOfGroups(app.state);
    const key = app.key("groups", by, order);
    const step = this.#step();
    if (key !== this.#key) {
      this.#key = key;
      this.#control.abort();
      this.#control = new AbortController();
      this.#running = 0;
      this.courses.clear();
    }
    pager.want(key, (next, signal) => app.query("groups", { ...app.question(), by, order, limit: "50", continue: next }, signal));
    if (by !== "object") this.course.want(app.key("course", by, step), (signal) => app.query("histogram", { ...app.question(), by, step }, signal));
    return [
      h("div", { class: "bar-line" },
        h("div", { class: "choice", role: "group", "aria-label": "Group by" }, dimensions.map((d) => h("button", { type: "button", key: d, "aria-pressed": by === d, onclick: () => app.go({ by: d }) }, titled(d)))),
        h("div", { class: "choice", role: "group", "aria-label": "Order" }, orders.map(([o, title]) => h("button", { type: "button", key: o, "aria-pressed": order === (o || "count"), onclick: () => app.go({ order: o }) }, title)))),
      this.#table(by, step),
    ];
  }

  #step() {
    const [from, to] = this.app.range();
    return stepFor(to - from, bars);
  }

  /** @param {string} by @param {string} step */
  #table(by, step) {
    const { app, pager } = this;
    if (!pager.rows.length) {
      if (pager.failure && !pager.loading) return failed(app, pager.failure);
      if (!pager.fresh) return loading("groups", 12);
      return [partial(pager.head), nothing(app, pager.head)];
    }
    return h("div", { class: pager.fresh ? "answer" : "answer stale", "aria-busy": pager.loading }, partial(pager.head),
      h("div", { class: "scroll-x" }, h("table", { class: `groups by-${by}`, "aria-label": "Groups" },
        h("thead", null, h("tr", null, [titled(by), "Count", "Course", "First", "Last", "Newest note"].map((t) => h("th", { scope: "col", key: t, class: "group-" + t.toLowerCase().split(" ").pop() }, t)))),
        h("tbody", null, pager.rows.map((g) => this.#group(g, by, step))))),
      pager.failure && failed(app, pager.failure),
      pager.more && h("p", { class: "actions" }, h("button", { type: "button", disabled: pager.loading, onclick: () => { pager.next(); app.redraw(); } }, pager.loading ? "Loading …" : "More groups")));
  }

  /** @param {Group} g @param {string} by @param {string} step */
  #group(g, by, step) {
    const { app } = this;
    const object = by === "object" ? g.by.object : null;
    const name = object ? objectName(object) : clear(g.by[by] ?? "") || grammar.lacking(by);
    const values = object ? this.#courseOf(g.by, step) : this.#courseIn(g.by[by], by);
    const first = Date.parse(g.first);
    const last = Date.parse(g.last);
    const terms = /** @type {grammar.Term[]} */ (object ? only(g.by) : [{ field: by, value: g.by[by], not: false }]);
    const q = terms.reduce(grammar.add, app.state.q);
    return h("tr", { key: JSON.stringify(g.by), "data-group": name },
      h("th", { scope: "row" }, h("div", { class: "group-head" }, h("a", { href: app.href({ view: "events", q, order: "" }) }, by === "pattern" && g.by[by] ? patterned(g.by[by]) : name), (object?.namespace || g.by.namespace) && object && h("span", { class: "hint" }, object.namespace || g.by.namespace),
        h("span", { class: "group-ways" }, (object || g.by[by]) && choose(app, terms, name),
          object && h("a", { class: "life", href: app.href(lifeOf({ ...object, namespace: object.namespace || g.by.namespace })) }, "life")))),
      h("td", { class: "number", title: g.count.toLocaleString("en") }, human(g.count)),
      h("td", { class: "group-course" }, values && sparkline(values, `${counted(g.count, "occurrence")}, most of them ${relative(this.#peak(values))}`, g.sample?.type === "Warning" ? "warning" : "normal")),
      h("td", { class: "group-first" }, h("time", { title: `${absolute(first)}, ${relative(first)}` }, short(first))), h("td", { class: "group-last" }, h("time", { title: relative(last) }, short(last)), g.state && g.sample?.type !== "Normal" && h("span", { class: "state " + g.state }, spoken(courseOf(g), Math.min(clock.now(), app.range()[1])).split(",")[0])),
      h("td", { class: "group-note" }, g.sample ? h("a", { href: app.href({ event: `${g.sample.metadata.namespace}/${g.sample.metadata.name}` }) }, clear(g.sample.note || g.sample.reason)) : ""));
  }

  /**
   * When most happened.
   * @param {number[]} values
   */
  #peak(values) {
    const [from, to] = this.app.range();
    return from + ((values.indexOf(Math.max(...values)) + 0.5) / values.length) * (to - from);
  }

  /**
   * The course of a value of a dimension.
   * @param {string} value @param {string} by
   */
  #courseIn(value, by) {
    const data = this.course.data;
    if (!data || data.by?.[0] !== by) return null;
    return spread(data, (b) => b.counts?.[value] ?? 0);
  }

  /**
   * The course of one object, asked for when it is first shown, three at a time.
   * @param {Record<string, any>} by @param {string} step
   */
  #courseOf(by, step) {
    const id = JSON.stringify(by);
    const known = this.courses.get(id);
    if (known !== undefined || this.#running >= 3 || this.app.session.open === false) return known ?? null;
    const { app } = this;
    const signal = this.#control.signal;
    this.courses.set(id, null);
    this.#running++;
    app.query("histogram", { ...app.question(), ...grammar.parameters(only(by).reduce(grammar.add, app.state.q)), by: "type", step }, signal)
      .then((data) => this.courses.set(id, spread(data, (b) => b.count)), () => {})
      .finally(() => {
        if (signal.aborted) return;
        this.#running--;
        app.redraw();
      });
    return null;
  }

  leave() {
    this.#control.abort();
    this.pager.stop();
    this.course.stop();
  }
}

/**
 * The terms that find the events about an object, and no others: its UID or, without one, where and what it is.
 * @param {Record<string, any>} by of its group @returns {grammar.Term[]}
 */
function only({ object, namespace = "", cluster = "" }) {
  if (object.uid) return [{ field: "uid", value: object.uid, not: false }];
  const terms = { kind: object.kind, name: object.name, namespace, cluster };
  return Object.entries(terms).filter(([, value]) => value).map(([field, value]) => ({ field, value, not: false }));
}
