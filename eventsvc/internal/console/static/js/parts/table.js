// A table of events of any length: only the rows that can be seen are in the document.

import { h } from "../lib/dom.js";
import { choose } from "./choose.js";
import { columns, objectName, series, shown, typeMark } from "./columns.js";
import { tableHead, widthOf } from "./tablehead.js";
import { clear } from "../lib/event.js";
import { absolute, brief, relative } from "../lib/time.js";

/** @typedef {import("../lib/event.js").Row} Row */

const narrow = matchMedia("(max-width: 46rem)");

export class Table {
  /** The row that the keys act on. */
  cursor = -1;
  #top = 0;
  #height = 600;
  /** @type {HTMLElement|null} */
  #host = null;
  /** @type {Row[]} */
  #rows = [];
  #focus = false;
  /** The row below the pointer: its values have buttons. */
  #hovered = "";

  /**
   * @param {import("../app.js").App} app @param {string} label
   * @param {{end?: () => void, scrolled?: (top: number) => void}} [hooks] end: the last row is near
   */
  constructor(app, label, hooks = {}) {
    this.app = app;
    this.label = label;
    this.hooks = hooks;
    this.resized = new ResizeObserver(() => {
      this.#height = this.#host?.clientHeight ?? this.#height;
      app.redraw();
    });
  }

  get rowHeight() {
    return narrow.matches ? 62 : 29;
  }

  /** How far it is scrolled down. */
  get top() {
    return this.#top;
  }

  /** @param {number} top */
  scrollTo(top) {
    this.#top = top;
    if (this.#host) this.#host.scrollTop = top;
  }

  /**
   * @param {Row[]} rows @param {number} total of all rows, -1 if it is not known
   * @param {import("../lib/dom.js").Child} [foot] what stands below the last row
   * @param {import("./tablehead.js").Sorting} [sorting]
   */
  draw(rows, total, foot, sorting) {
    this.#rows = rows;
    const height = this.rowHeight;
    if (this.cursor >= rows.length) this.cursor = rows.length - 1;
    const first = Math.max(0, Math.floor(this.#top / height) - 8);
    const last = Math.min(rows.length, Math.ceil((this.#top + this.#height) / height) + 8);
    if (last >= rows.length - 40) this.hooks.end?.();
    const names = shown();
    const template = narrow.matches ? "1fr" : names.map(widthOf).join(" ");
    return h("div", {
      class: narrow.matches ? "table cards" : "table", role: "table", "aria-label": this.label, "aria-rowcount": total < 0 ? -1 : total + 1, tabindex: rows.length ? undefined : "0",
      css: { "--columns": template, "--row": `${height}px` },
      ref: (/** @type {HTMLElement} */ e) => { this.#host = e; this.#height = e.clientHeight; this.resized.observe(e); e.scrollTop = this.#top; },
      onscroll: (/** @type {Event} */ e) => {
        const top = /** @type {HTMLElement} */ (e.currentTarget).scrollTop;
        if (top === this.#top) return;
        this.#top = top;
        this.hooks.scrolled?.(top);
        this.app.redraw();
      },
    },
      h("div", { role: "rowgroup", class: "thead" }, h("div", { role: "row", class: "tr head", "aria-rowindex": 1 },
        narrow.matches ? h("span", { role: "columnheader" }, "Events") : tableHead(this.app, names, sorting))),
      h("div", { role: "rowgroup", class: "tbody", css: { height: `${rows.length * height}px` } },
        rows.slice(first, last).map((r, i) => this.#row(r, first + i, names))),
      foot && h("div", { class: "tfoot" }, foot));
  }

  /** @param {Row} r @param {number} i @param {string[]} names */
  #row(r, i, names) {
    const { app } = this;
    const current = i === this.cursor || (this.cursor < 0 && i === 0);
    const href = app.href({ event: r.id });
    const fresh = app.isNew(r.revision) && h("span", { class: "unseen" }, "New. ");
    const linked = names.includes("reason") ? "reason" : names[0];
    return h("div", {
      role: "row", key: `${r.id} ${r.revision}`, class: `tr${r.type === "Warning" ? " warning" : ""}${app.state.event === r.id ? " open" : ""}${app.isNew(r.revision) ? " new" : ""}`,
      "aria-rowindex": i + 2, tabindex: current ? "0" : "-1", css: { transform: `translateY(${i * this.rowHeight}px)` }, "data-row": r.id,
      "aria-label": narrow.matches ? `${r.type} ${r.reason} ${objectName(r)}: ${r.note}` : undefined,
      onclick: (/** @type {MouseEvent} */ e) => {
        if (!getSelection()?.isCollapsed) return e.preventDefault(); // a text was selected by dragging
        const link = e.target instanceof Element && e.target.closest("a");
        if (e.ctrlKey || e.metaKey || e.shiftKey) return link || apart(href); // a browser opens its links so itself
        e.preventDefault();
        this.cursor = i;
        app.go({ event: r.id });
      },
      onauxclick: (/** @type {MouseEvent} */ e) => { if (e.button === 1 && !(e.target instanceof Element && e.target.closest("a"))) apart(href); },
      onfocus: () => { if (this.cursor !== i) { this.cursor = i; app.redraw(); } },
      onpointerenter: (/** @type {PointerEvent} */ e) => { if (e.pointerType === "mouse") { this.#hovered = r.id; app.redraw(); } },
      ref: i === this.cursor && this.#focus ? (/** @type {HTMLElement} */ e) => { this.#focus = false; e.focus({ preventScroll: true }); } : undefined,
    }, narrow.matches ? card(r, href) : names.map((n) => {
      const cell = columns[n].cell(r);
      const term = this.#hovered === r.id && columns[n].term?.(r);
      return h("span", { role: "cell", key: n, class: "c-" + n }, n === linked ? h("a", { href, tabindex: "-1", draggable: "false" }, fresh, cell) : cell, term && term.value && choose(app, [term], `${columns[n].title} ${term.value}`, "-1"));
    }));
  }

  /**
   * Handles a key, and says whether it has.
   * @param {string} key
   */
  key(key) {
    if (!this.#host?.isConnected) return false; // a message stands in its place
    const row = this.#rows[this.cursor];
    const page = Math.max(1, Math.floor(this.#height / this.rowHeight) - 2);
    /** @type {Record<string, number>} */
    const moves = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (key in moves && this.#rows.length) {
      this.cursor = Math.max(0, Math.min(this.#rows.length - 1, this.cursor + moves[key]));
      this.#show();
    } else if (["Enter", "o", "s"].includes(key) && row && !this.#seen()) {
      this.#show(); // before it is opened
    } else if (key === "Enter" && row) {
      this.app.go({ event: row.id });
    } else if (key === "o" && row) {
      this.app.go(lifeOf({ ...row, namespace: row.ns }));
    } else if (key === "s" && row) {
      this.app.add({ field: "reason", value: row.reason, not: false });
    } else {
      return false;
    }
    return true;
  }

  /** Whether the row of the cursor is on the screen. */
  #seen() {
    const at = this.cursor * this.rowHeight;
    return at >= this.#top - this.rowHeight / 2 && at < this.#top + this.#height - this.rowHeight;
  }

  /** Scrolls to the cursor and gives it the focus. */
  #show() {
    const host = this.#host;
    if (!host) return;
    const at = this.cursor * this.rowHeight;
    const room = this.#height - 2 * this.rowHeight;
    if (at < this.#top) this.scrollTo(at);
    else if (at > this.#top + room) this.scrollTo(at - room);
    if (this.app.state.event && this.#rows[this.cursor]) this.app.go({ event: this.#rows[this.cursor].id }, true);
    const there = /** @type {HTMLElement|null} */ (host.querySelector(`[aria-rowindex="${this.cursor + 2}"]`));
    if (there) there.focus({ preventScroll: true });
    else this.#focus = true;
    this.app.redraw();
  }

  stop() {
    this.resized.disconnect();
  }
}

/**
 * Opens an address of the page in a tab of its own.
 * @param {string} href
 */
const apart = (href) => void open(location.pathname + href, "_blank", "noopener");

/**
 * The state that shows the life of an object. The events of one without a namespace, such as a Node, are in any.
 * @param {{kind: string, name: string, namespace: string, uid: string}} r
 */
export const lifeOf = (r) => ({ view: "object", kind: r.kind, name: r.name, ns: r.namespace, uid: r.uid, event: "" });

/**
 * A row where there is no room for columns.
 * @param {Row} r @param {string} href
 */
function card(r, href) {
  return h("span", { role: "cell", class: "card" },
    h("span", { class: "card-line" }, typeMark(r.type), h("a", { href, tabindex: "-1", draggable: "false" }, h("strong", null, clear(r.reason))), h("span", { class: "card-object" }, clear(r.name)), h("time", { title: `${absolute(r.time)}, ${relative(r.time)}` }, brief(r.time))),
    h("span", { class: "card-note" }, r.namespace && h("span", { class: "card-namespace" }, r.namespace), series(r), clear(r.note)));
}
