// The events that match, newest first, without end.

import { h } from "../lib/dom.js";
import { counted, human, row } from "../lib/event.js";
import { Pager } from "../lib/pager.js";
import { Search } from "../lib/search.js";
import { columnMenu } from "../parts/columns.js";
import { Facets, facetsShown } from "../parts/facets.js";
import { Histogram } from "../parts/histogram.js";
import { failed, loading, nothing, outdated, partial } from "../parts/message.js";
import { Table } from "../parts/table.js";
import { sorted } from "../parts/tablehead.js";

/** @typedef {import("../lib/event.js").Row} Row */

export class Events {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.search = new Search(app, 100);
    this.histogram = new Histogram(app, this.search, 72);
    this.facets = new Facets(app, this.search);
    /** @type {Pager<Row>} */
    this.pager = new Pager(app.redraw, (answer) => answer.items.map(row));
    this.table = new Table(app, "Events", { end: () => this.pager.next() });
    this.columns = columnMenu(app);
    this.#question = "";
  }

  /** The question whose rows are shown. */
  #question;

  draw() {
    const { app, pager } = this;
    const order = app.state.order === "oldest" ? "oldest" : "newest";
    const key = app.key("events", order);
    const question = JSON.stringify([app.question(), app.state.order]); // the same when it is asked again
    if (question !== this.#question) {
      this.#question = question;
      this.table.scrollTo(0);
      this.table.cursor = -1;
    }
    const histogram = this.histogram.draw(order);
    pager.follow(key, this.search.answer, (next, signal) => app.query("events", { ...app.question(), order, limit: "500", continue: next }, signal));
    const failing = pager.failure && !pager.loading && !pager.rows.length;
    const wide = h("div", { class: "wide" }, histogram, !failing && this.#bar(order), this.#rows()); // says what is wrong, before the facets might
    return h("div", { class: "with-facets full" }, h("div", { class: "side" }, facetsShown(app) && this.facets.draw()), wide);
  }

  /** @param {string} order */
  #bar(order) {
    const { app, pager } = this;
    const total = pager.more ? -1 : pager.rows.length;
    return h("div", { class: "bar-line" },
      h("p", { class: "count", role: "status" }, !pager.fresh ? (pager.failure ? "" : "Loading …") : total >= 0 ? counted(total, "event") : this.#many()),
      h("div", { class: "choice", role: "group", "aria-label": "Order" }, ["newest", "oldest"].map((o) =>
        h("button", { type: "button", key: o, "aria-pressed": order === o, onclick: () => app.go({ order: o === "newest" ? "" : o }) }, o === "newest" ? "Newest first" : "Oldest first"))),
      this.columns.draw());
  }

  /** How many rows there are, and how many more. */
  #many() {
    const { data, stale } = this.search.answer;
    return [`${human(this.pager.rows.length)} loaded, more as you scroll`, data && !stale && !data.counting && `\u00a0· ${human(data.total)} occurrences match`];
  }

  #rows() {
    const { app, pager } = this;
    if (!pager.rows.length) {
      if (pager.failure && !pager.loading) return failed(app, pager.failure);
      if (!pager.fresh) return loading("events", 12);
      if (!pager.more) return [partial(pager.head), nothing(app, pager.head)];
      pager.next();
    }
    const foot = pager.failure && pager.fresh ? h("p", { class: "note warn" }, `The next rows could not be loaded: ${pager.failure.message}.`, h("button", { type: "button", class: "plain", onclick: () => { pager.again(); app.redraw(); } }, "Try again"))
      : pager.more ? h("p", { class: "quiet" }, "Loading more …") : null;
    return h("div", { class: pager.fresh ? "answer" : "answer stale", "aria-busy": pager.loading },
      pager.failure && !pager.fresh && !pager.loading && outdated(app, pager.failure), partial(pager.head),
      this.table.draw(this.#sorted(), pager.more ? -1 : pager.rows.length, foot, this.#sorting()));
  }

  /**
   * The rows as they were last sorted.
   * @type {{of: Row[], length: number, by: string, rows: Row[]}}
   */
  #last = { of: [], length: 0, by: "", rows: [] };

  /** The rows in the order of a column, once all of them are here; the server orders them by time. */
  #sorted() {
    const { rows, more } = this.pager;
    const by = this.app.state.order;
    if (more || !by || by === "oldest" || by.endsWith("time")) return rows;
    if (this.#last.of !== rows || this.#last.length !== rows.length || this.#last.by !== by) this.#last = { of: rows, length: rows.length, by, rows: sorted(rows, by) };
    return this.#last.rows;
  }

  /** @returns {import("../parts/tablehead.js").Sorting} */
  #sorting() {
    const { app, pager } = this;
    const { order } = app.state;
    return {
      by: order === "" ? "-time" : order === "oldest" ? "time" : order,
      can: (name) => name === "time" || !pager.more,
      set: (by) => app.go({ order: by === "-time" ? "" : by === "time" ? "oldest" : by }),
    };
  }

  /** @param {string} key */
  key(key) {
    return this.table.key(key);
  }

  leave() {
    this.histogram.stop();
    this.facets.found.stop();
    this.facets.more.stop();
    this.pager.stop();
    this.table.stop();
    this.columns.stop();
  }
}
