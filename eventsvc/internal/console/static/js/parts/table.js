// A table of events of any length: only the rows that can be seen are in the document.

import { h } from "../lib/dom.js";
import { clear } from "../lib/event.js";
import { lacking } from "../lib/grammar.js";
import { prefs } from "../lib/prefs.js";
import { absolute, brief, relative } from "../lib/time.js";
import { choose } from "./choose.js";
import { alike, columns, nameOf, objectName, series, shown, typeMark } from "./columns.js";
import { Heights } from "./heights.js";
import { icon } from "./icons.js";
import { gap, tableHead, widthsOf } from "./tablehead.js";
import { dimmed, Ruler } from "./text.js";

/** @typedef {import("../lib/event.js").Row} Row */

const narrow = matchMedia("(max-width: 46rem)");
const ruler = new Ruler();

/** The height of the titles of the columns, in pixels. */
const head = 30;

/** Below this room in pixels, the object stands below the reason. */
const tight = 860;

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
  #heights = new Heights();
  /**
   * Rows whose note is shown in full, and how often that has changed.
   * @type {Set<string>}
   */
  #full = new Set();
  #turns = 0;
  #room = 1000;
  /** What rows are drawn with: the columns, those that are alike, the width of the note, whether the object is below the reason. */
  #form = { names: /** @type {string[]} */ ([]), same: /** @type {string[]} */ ([]), widths: /** @type {Record<string, number>} */ ({}), note: 0, tight: false };

  /**
   * @param {import("../app.js").App} app @param {string} label
   * @param {{end?: () => void, scrolled?: (top: number) => void}} [hooks] end: the last row is near
   */
  constructor(app, label, hooks = {}) {
    this.app = app;
    this.label = label;
    this.hooks = hooks;
    this.resized = new ResizeObserver(() => this.#measure());
  }

  #measure() {
    if (!this.#host) return;
    const { clientHeight, clientWidth } = this.#host;
    if (clientHeight === this.#height && clientWidth - 24 === this.#room && ruler.font) return;
    this.#height = clientHeight;
    this.#room = clientWidth - 24;
    const { fontSize, fontFamily } = getComputedStyle(this.#host);
    ruler.use(`${fontSize} ${fontFamily}`);
    this.app.redraw(true); // before it is seen
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
    this.#shape(rows);
    const { names, same, widths } = this.#form;
    if (this.cursor >= rows.length) this.cursor = rows.length - 1;
    const first = Math.max(0, this.#heights.at(this.#top) - 6);
    const last = Math.min(rows.length, this.#heights.at(this.#top + this.#height) + 7);
    if (last >= rows.length - 40) this.hooks.end?.();
    return [
      same.length > 0 && h("p", { class: "same-in-all" }, "All of them:", same.map((n) => {
        const term = columns[n].term?.(rows[0]);
        return h("span", { key: n, "data-same": n }, h("span", { class: "hint" }, `${columns[n].title.toLowerCase()} `), columns[n].cell(rows[0]) || lacking(n), term?.value && choose(this.app, [term], `${columns[n].title} ${term.value}`));
      })),
      h("div", {
        class: narrow.matches ? "table cards" : "table", role: "table", "aria-label": this.label, "aria-rowcount": total < 0 ? -1 : total + 1, tabindex: rows.length ? undefined : "0",
        css: { "--columns": narrow.matches ? "1fr" : names.map((n) => `${widths[n]}px`).join(" "), "--gap": `${gap}px` },
        ref: (/** @type {HTMLElement} */ e) => { this.#host = e; this.resized.observe(e); queueMicrotask(() => this.#measure()); e.scrollTop = this.#top; },
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
        h("div", { role: "rowgroup", class: "tbody", css: { height: `${this.#heights.total}px` } },
          rows.slice(first, last).map((r, i) => this.#row(r, first + i))),
        foot && h("div", { class: "tfoot" }, foot)),
    ];
  }

  /**
   * Decides which columns there are, how wide, and how high each row is.
   * @param {Row[]} rows
   */
  #shape(rows) {
    const all = shown();
    const some = rows.length > 400 ? [...rows.slice(0, 200), ...rows.slice(-200)] : rows;
    const same = narrow.matches ? [] : alike(rows, all);
    const stacked = !narrow.matches && this.#room < tight && all.includes("reason") && all.includes("object") && !same.includes("reason");
    const names = all.filter((n) => !same.includes(n) && !(stacked && (n === "object" || n === "namespace")));
    const widths = widthsOf(names, some, ruler, this.#room, stacked);
    const note = narrow.matches ? this.#room : widths.note ?? 0;
    this.#form = { names, same, widths, note, tight: stacked };
    this.#heights.place(rows, `${note} ${prefs.lines} ${this.#turns} ${stacked} ${narrow.matches} ${ruler.font}`, (r) => this.#heightOf(r));
  }

  /**
   * How many lines the note of a row takes in all.
   * @param {Row} r
   */
  #linesOf(r) {
    const { note } = this.#form;
    if (!note || !ruler.font) return 1;
    if (r.linesAt !== note) {
      r.linesAt = note;
      r.lines = ruler.lines(r.note, note - 2);
    }
    return r.lines ?? 1;
  }

  /** @param {Row} r */
  #visibleLines(r) {
    return Math.min(this.#full.has(r.id) ? 99 : prefs.lines, this.#linesOf(r));
  }

  /** @param {Row} r */
  #heightOf(r) {
    const lines = this.#visibleLines(r);
    return narrow.matches ? 36 + 20 * lines : 10 + 19 * Math.max(lines, this.#form.tight ? 2 : 1);
  }

  /** @param {Row} r @param {number} i */
  #row(r, i) {
    const { app } = this;
    const { names, tight } = this.#form;
    const current = i === this.cursor || (this.cursor < 0 && i === 0);
    const href = app.href({ event: r.id });
    const fresh = app.isNew(r.revision) && h("span", { class: "unseen" }, "Arrived. ");
    const linked = names.includes("reason") ? "reason" : names[0];
    return h("div", {
      role: "row", key: `${r.id} ${r.revision}`, class: `tr${r.type === "Warning" ? " warning" : ""}${app.state.event === r.id ? " open" : ""}${app.isNew(r.revision) ? " new" : ""}${r.arrived && Date.now() - r.arrived < 250 ? " arrived" : ""}`,
      "aria-rowindex": i + 2, tabindex: current ? "0" : "-1", css: { transform: `translateY(${this.#heights.top(i)}px)`, height: `${this.#heightOf(r)}px`, "--lines": String(this.#visibleLines(r)) }, "data-row": r.id,
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
    }, narrow.matches ? card(r, href, this.#more(r)) : names.map((n) => {
      const cell = columns[n].cell(r);
      const term = this.#hovered === r.id && columns[n].term?.(r);
      return h("span", { role: "cell", key: n, class: "c-" + n }, n === linked ? h("a", { href, tabindex: "-1", draggable: "false" }, fresh, cell) : n === "note" ? h("span", { class: "text" }, cell) : cell,
        n === "note" && this.#more(r), n === "reason" && tight && h("span", { class: "below" }, columns.object.cell(r), r.namespace && ` in ${r.namespace}`), term && term.value && choose(app, [term], `${columns[n].title} ${term.value}`, "-1"));
    }));
  }

  /**
   * The button that shows all of a note, or less again.
   * @param {Row} r
   */
  #more(r) {
    const full = this.#full.has(r.id);
    if (!full && this.#linesOf(r) <= prefs.lines) return null;
    const title = full ? "Show less of the note (e)" : "Show all of the note (e)";
    return h("button", { type: "button", class: "plain icon more-note", tabindex: "-1", title, "aria-label": title, "aria-expanded": full, onclick: (/** @type {Event} */ e) => { e.stopPropagation(); this.#unfold(r); } }, icon(full ? "less" : "more"));
  }

  /** @param {Row} r */
  #unfold(r) {
    if (!this.#full.delete(r.id)) this.#full.add(r.id);
    this.#turns++;
    this.app.redraw();
  }

  /**
   * Handles a key, and says whether it has.
   * @param {string} key
   */
  key(key) {
    if (!this.#host?.isConnected) return false; // a message stands in its place
    const row = this.#rows[this.cursor];
    const page = Math.max(1, this.#heights.at(this.#top + this.#height) - this.#heights.at(this.#top) - 2);
    /** @type {Record<string, number>} */
    const moves = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (key in moves && this.#rows.length) {
      this.cursor = Math.max(0, Math.min(this.#rows.length - 1, this.cursor + moves[key]));
      this.#show();
    } else if (["Enter", "o", "s", "e"].includes(key) && row && !this.#seen()) {
      this.#show(); // before it is opened
    } else if (key === "Enter" && row) {
      this.app.go({ event: row.id });
    } else if (key === "o" && row) {
      this.app.go(lifeOf({ ...row, namespace: row.ns }));
    } else if (key === "e" && row) {
      this.#unfold(row);
    } else if (key === "s" && row) {
      this.app.add({ field: "reason", value: row.reason, not: false });
    } else {
      return false;
    }
    return true;
  }

  /** Whether the row of the cursor is on the screen. */
  #seen() {
    return this.#heights.top(this.cursor + 1) > this.#top + 14 && this.#heights.top(this.cursor) < this.#top + this.#height - head;
  }

  /** Scrolls to the cursor and gives it the focus. */
  #show() {
    const host = this.#host;
    if (!host) return;
    const [begin, end] = [this.#heights.top(this.cursor), this.#heights.top(this.cursor + 1)];
    const room = this.#height - head;
    if (begin < this.#top) this.scrollTo(begin);
    else if (end > this.#top + room) this.scrollTo(end - room);
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
 * @param {Row} r @param {string} href @param {import("../lib/dom.js").Child} more
 */
function card(r, href, more) {
  return h("span", { role: "cell", class: "card" },
    h("span", { class: "card-line" }, typeMark(r.type), h("a", { href, tabindex: "-1", draggable: "false" }, h("strong", null, clear(r.reason))), h("span", { class: "card-object" }, nameOf(r.name)), h("time", { title: `${absolute(r.time)}, ${relative(r.time)}` }, brief(r.time))),
    h("span", { class: "card-note text" }, r.namespace && h("span", { class: "card-namespace" }, r.namespace), series(r), dimmed(r.note)), more);
}
