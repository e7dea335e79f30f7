// Facets: how often each value of each dimension occurs, beside what is found.

import { h } from "../lib/dom.js";
import { human } from "../lib/event.js";
import * as grammar from "../lib/grammar.js";
import { Resource } from "../lib/load.js";
import { icon } from "./icons.js";
import { answered } from "./message.js";

export class Facets {
  /**
   * Dimensions of which more values are shown.
   * @type {Set<string>}
   */
  #long = new Set();

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Resource<any>} */
    this.answer = new Resource(app.redraw);
  }

  draw() {
    const { app } = this;
    const limit = this.#long.size ? "100" : "8";
    this.answer.want(app.key("facets", limit), (signal) => app.query("facets", { ...app.question(), by: grammar.dimensions.join(","), limit }, signal));
    return h("aside", { class: "facets", "aria-label": "Facets" }, answered(app, this.answer, "facets", (data) => grammar.dimensions.map((d) => this.#facet(d, data))));
  }

  /** @param {string} dimension @param {any} data */
  #facet(dimension, data) {
    /** @type {{value: string, count: number}[]} */
    const values = data.facets?.[dimension] ?? [];
    const rest = data.other?.[dimension] ?? 0;
    if (!values.length || (values.length === 1 && values[0].value === "" && rest === 0)) return null;
    const most = Math.max(...values.map((v) => v.count), 1);
    const long = this.#long.has(dimension);
    const shown = long ? values : values.slice(0, 8);
    const hidden = rest + values.slice(shown.length).reduce((n, v) => n + v.count, 0);
    return h("section", { class: "facet", key: dimension },
      h("h3", { id: "facet-" + dimension }, dimension),
      h("ul", { "aria-labelledby": "facet-" + dimension }, shown.map((v) => this.#value(dimension, v, most))),
      (hidden > 0 || long) && h("button", {
        type: "button", class: "plain more", onclick: () => {
          if (long) this.#long.delete(dimension);
          else this.#long.add(dimension);
          this.app.redraw();
        },
      }, long ? "Show fewer" : `More (${human(hidden)})`));
  }

  /** @param {string} dimension @param {{value: string, count: number}} v @param {number} most */
  #value(dimension, v, most) {
    const { app } = this;
    const asked = grammar.asks(app.state.q, dimension, v.value);
    const term = { field: dimension, value: v.value, not: false };
    const name = v.value || "none";
    return h("li", { key: v.value, class: asked ? "asked" : "" },
      h("button", {
        type: "button", class: "plain value", "aria-pressed": asked === "with", title: v.value, disabled: v.value === "", "data-facet": `${dimension}:${v.value}`,
        onclick: () => (asked ? app.remove(term) : app.add(term)),
      },
        h("span", { class: "share" + (v.value === "Warning" && dimension === "type" ? " warning" : ""), css: { width: `${(v.count / most) * 100}%` } }),
        h("span", { class: "name" }, name), h("span", { class: "n", title: v.count.toLocaleString("en") }, human(v.count))),
      v.value !== "" && h("button", { type: "button", class: "plain icon exclude", title: `Leave out ${name}`, "aria-label": `Leave out ${dimension} ${name}`, onclick: () => app.add({ ...term, not: true }) }, icon("minus")));
  }
}
