// Clusters: which ones are copied to here, and whether their mirrors are heard from. A server of one's own events has none.

import { h } from "../lib/dom.js";
import { clear, counted } from "../lib/event.js";
import * as grammar from "../lib/grammar.js";
import { absolute, relative, short } from "../lib/time.js";

/** @typedef {{name: string, completeUntil: string, lag: number, late?: boolean, every?: number, lastEvent?: string, gaps: number, mirror?: string}} Row */

/** So many are shown at first. */
const few = 6;

export class Clusters {
  #all = false;

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
  }

  draw() {
    const { app } = this;
    const rows = app.clusters.data?.items ?? [];
    if (!rows.length) return null; // or why there is no answer, which the histogram says
    const behind = rows.filter((r) => r.late);
    const sorted = [...behind.sort((a, b) => b.lag - a.lag), ...rows.filter((r) => !r.late)];
    const shown = this.#all ? sorted : sorted.slice(0, few);
    return h("section", { class: "panel-box clusters", "aria-labelledby": "clusters-title" },
      h("h2", { id: "clusters-title" }, "Clusters", h("span", { class: "hint" }, behind.length ? `${behind.length} of ${rows.length} late` : `${rows.length} mirrored`)),
      h("ul", null, shown.map((r) => this.#row(r))),
      sorted.length > few && h("button", { type: "button", class: "plain more", onclick: () => { this.#all = !this.#all; app.redraw(); } }, this.#all ? "Show fewer" : `${sorted.length - few} more`));
  }

  /** @param {Row} r */
  #row(r) {
    const { app } = this;
    const term = { field: "cluster", value: r.name, not: false };
    const asked = grammar.asks(app.state.q, term.field, term.value) === "with";
    const complete = Date.parse(r.completeUntil);
    const newest = Date.parse(r.lastEvent ?? "");
    return h("li", { key: r.name },
      h("button", { type: "button", class: "plain name", "aria-pressed": asked, title: r.name, "data-cluster": r.name, onclick: () => (asked ? app.remove(term) : app.add(term)) }, clear(r.name)),
      r.late && h("span", { class: "change-mark new" }, "Late"),
      r.gaps > 0 && h("span", { class: "change-mark new" }, counted(r.gaps, "gap")),
      h("time", { title: `Complete until ${absolute(complete)}${Number.isNaN(newest) ? "" : `; its newest event is of ${absolute(newest)}`}${r.mirror ? `; mirror ${clear(r.mirror)}` : ""}` }, r.late ? `complete until ${short(complete)}` : Number.isNaN(newest) ? "up to date" : `newest ${relative(newest)}`));
  }
}
