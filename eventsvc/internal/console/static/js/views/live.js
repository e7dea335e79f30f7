// Live: what is there, and what arrives on top of it.

import { aborted, Failure } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { counted, human, row } from "../lib/event.js";
import * as grammar from "../lib/grammar.js";
import { Pager } from "../lib/pager.js";
import { Again, matcher, Tail } from "../lib/tail.js";
import { columnMenu } from "../parts/columns.js";
import { icon } from "../parts/icons.js";
import { failed, loading, partial } from "../parts/message.js";
import { Table } from "../parts/table.js";

/** @typedef {import("../lib/event.js").Row} Row */

const mostNamespaces = 20; // that are watched one by one

export class Live {
  /** @type {Tail|null} */
  tail = null;
  /**
   * What had arrived when it was paused, the newest first.
   * @type {{rows: Row[], ids: Set<string>}|null}
   */
  #still = null;
  #arrivedBefore = 0;
  #key = "";
  #control = new AbortController();
  /**
   * Why it could not begin.
   * @type {Failure|null}
   */
  #failure = null;
  /** The beginning, while the server cannot be reached. */
  #again = new Again();
  /** The rate falls while nothing arrives. */
  #ticking = setInterval(() => this.app.redraw(), 1000);

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Pager<Row>} */
    this.older = new Pager(() => this.#begin(), (answer) => answer.items.map(row));
    this.table = new Table(app, "Live events", {
      end: () => this.older.next(),
      scrolled: (top) => { if (top > 4 && !this.#still) this.pause(); else if (top === 0 && this.#still && this.#scrolled) this.resume(); },
    });
    this.columns = columnMenu(app);
  }

  #scrolled = false; // it was paused by scrolling

  draw() {
    const { app } = this;
    const key = `${app.turn} ${app.state.q} ${app.state.from}`; // a new turn comes with a new sign-in, too
    if (key !== this.#key && app.session.open) {
      this.#key = key;
      this.#restart();
    }
    const { q, from } = app.state;
    this.older.want(key, (next, signal) => app.query("events", { ...grammar.parameters(q), from, to: next ? undefined : "+1m", limit: next ? "500" : "100", continue: next }, signal));
    return [this.#bar(), ...this.#notes(), this.#rows()];
  }

  #restart() {
    this.tail?.stop();
    this.tail = null;
    this.#control.abort();
    this.#control = new AbortController();
    this.#failure = null;
    this.#again.stop();
    this.#still = null;
    this.table.scrollTo(0);
    this.table.cursor = -1;
  }

  /** Begins to watch behind the first page, which says its revision. It tries again while the server is away. */
  async #begin() {
    const { app, older } = this;
    app.redraw();
    if (this.tail || !app.session.open) return;
    if (!older.fresh) {
      if (older.failure && !older.failure.final && older.failure.kind !== "expired") this.#again.later(() => { older.again(); app.redraw(); });
      return;
    }
    const control = this.#control;
    const answer = older.head;
    const reading = await this.#first(() => app.reader.read(app.state.q));
    if (!reading || control.signal.aborted || this.tail) return;
    const one = grammar.namespaceOf(reading.terms);
    const rest = reading.terms.filter((t) => t !== one);
    /** @type {string[]} */
    let namespaces = [one?.value ?? ""];
    /** @type {string[]} */
    const notices = [];
    if (/"field":"pattern"/.test(JSON.stringify(reading.tree))) notices.push("Patterns choose among older events only: what arrives is compared with the other terms.");
    if (!one && answer.namespaces) {
      // Not all may be seen: those that may are watched one by one.
      const facets = await this.#first(() => app.api.query("facets", { by: "namespace", from: "-30d", limit: "1000" }, control.signal));
      if (!facets || control.signal.aborted || this.tail) return;
      namespaces = facets.facets.namespace.map((/** @type {any} */ v) => v.value);
      notices.push(`You see ${answer.namespaces.join(", ")}. ${counted(Math.min(namespaces.length, mostNamespaces), "namespace")} with events of the last 30 days are watched.`);
    }
    this.#failure = null;
    this.#again.stop();
    this.tail = new Tail(app.api, namespaces.slice(0, mostNamespaces), { fieldSelector: grammar.listSelector(grammar.exact(rest)), labelSelector: grammar.labelSelector(rest) }, matcher(reading.tree), app.redraw);
    this.tail.notices.push(...notices);
    this.tail.start(answer.revision);
  }

  /**
   * What has to be known before it begins. If there is no answer, it begins again later.
   * @template T
   * @param {() => Promise<T>} ask @returns {Promise<T|undefined>}
   */
  async #first(ask) {
    const { signal } = this.#control;
    try {
      return await ask();
    } catch (err) {
      if (aborted(err) || signal.aborted) return;
      this.#failure = err instanceof Failure ? err : new Failure("failed", String(err));
      if (!this.#failure.final && this.#failure.kind !== "expired") this.#again.later(() => this.#begin());
      this.app.redraw();
    }
  }

  #bar() {
    const { tail } = this;
    const phase = this.#again.attempt ? "waiting" : this.#failure || tail?.failure || this.older.failure && !this.older.loading && !tail ? "stopped" : tail?.phase ?? "starting";
    const words = { starting: "Connecting …", live: this.#still ? "Paused" : "Live", waiting: "Disconnected, trying again", stopped: "Stopped" };
    return h("div", { class: "bar-line" },
      h("p", { class: `phase ${phase}${this.#still ? " still" : ""}`, role: "status" }, h("i", { class: "dot" }), words[phase]),
      h("button", { type: "button", "aria-pressed": this.#still !== null, title: "p", onclick: () => (this.#still ? this.resume() : this.pause(false)) }, icon(this.#still ? "play" : "pause"), this.#still ? "Go on" : "Pause"),
      h("p", { class: "rate", "aria-live": "off" }, `${(tail?.rate ?? 0).toFixed(tail && tail.rate >= 10 ? 0 : 1)} a second`),
      h("p", { class: "count" }, tail && tail.received > 0 && `${human(tail.received)} arrived`),
      phase === "waiting" && h("button", { type: "button", onclick: () => (tail ? tail.retry() : this.#again.now()) }, "Try now"),
      this.columns.draw());
  }

  #notes() {
    const { app, tail, older } = this;
    const failure = this.#failure ?? tail?.failure ?? (older.rows.length && !older.loading ? older.failure : null);
    return [
      partial(older.head),
      failure && failed(app, failure),
      tail?.notices.slice(-2).map((text) => h("p", { class: "note", role: "status", key: text }, text, h("button", { type: "button", class: "plain icon", title: "Close", "aria-label": "Close", onclick: () => { tail.notices.splice(tail.notices.indexOf(text), 1); app.redraw(); } }, icon("close")))),
      tail && tail.dropped > 0 && h("p", { class: "note", key: "dropped" }, `${human(tail.dropped)} older rows were removed from this page; they are on the page of events.`),
    ];
  }

  #rows() {
    const { app, older, tail } = this;
    if (!older.fresh && !older.rows.length) return older.failure && !older.loading ? failed(app, older.failure) : loading("events", 12);
    const rows = this.#still ? [...this.#still.rows] : this.#arrived();
    const above = this.#still?.ids ?? tail;
    for (const r of older.rows) if (!above?.has(r.id)) rows.push(r);
    const waiting = this.#still ? (tail?.received ?? 0) - this.#arrivedBefore : 0;
    return h("div", { class: "answer live-rows" },
      waiting > 0 && h("button", { type: "button", class: "pill", onclick: () => this.resume() }, `${waiting.toLocaleString("en")} new`),
      rows.length === 0 ? h("div", { class: "message", "data-kind": "empty" }, h("h2", null, "Waiting for events"), h("p", { class: "why" }, app.state.q ? "None that matches has arrived yet." : "None has arrived yet."))
        : this.table.draw(rows, older.more ? -1 : rows.length, older.more && !older.failure ? h("p", { class: "quiet" }, "Loading more …") : null));
  }

  /**
   * What has arrived, the newest first.
   * @returns {Row[]}
   */
  #arrived() {
    /** @type {Row[]} */
    const rows = [];
    const arrived = this.tail?.arrived ?? [];
    for (let i = arrived.length - 1; i >= 0; i--) if (!arrived[i].replaced) rows.push(arrived[i]);
    return rows;
  }

  /**
   * Keeps what is shown.
   * @param {boolean} [scrolled]
   */
  pause(scrolled = true) {
    this.#scrolled = scrolled;
    const rows = this.#arrived();
    this.#still = { rows, ids: new Set(rows.map((r) => r.id)) };
    this.#arrivedBefore = this.tail?.received ?? 0;
    this.app.redraw();
  }

  /** Shows the newest again. */
  resume() {
    this.#still = null;
    this.table.scrollTo(0);
    this.table.cursor = -1;
    this.app.redraw();
  }

  /** @param {string} key */
  key(key) {
    if (key === "p") {
      if (this.#still) this.resume();
      else this.pause(false);
      return true;
    }
    if (key === "n") {
      this.resume();
      return true;
    }
    if (["j", "k", "ArrowDown", "ArrowUp", "Enter"].includes(key) && !this.#still) this.pause(false);
    return this.table.key(key);
  }

  leave() {
    clearInterval(this.#ticking);
    this.#again.stop();
    this.#control.abort();
    this.tail?.stop();
    this.older.stop();
    this.table.stop();
    this.columns.stop();
  }
}
