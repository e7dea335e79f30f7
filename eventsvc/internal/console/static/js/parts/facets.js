// Facets: how often each value of each dimension occurs, beside what is found.

import { h } from "../lib/dom.js";
import { clear, human } from "../lib/event.js";
import * as grammar from "../lib/grammar.js";
import { Resource } from "../lib/load.js";
import { prefer, prefs } from "../lib/prefs.js";
import { choose } from "./choose.js";
import { icon } from "./icons.js";
import { answered } from "./message.js";

/** Matches screens that have no room for the facets: there a button shows them. */
const narrow = matchMedia("(max-width: 46rem)");

/** @param {import("../app.js").App} app */
export const facetsShown = (app) => (narrow.matches ? app.facets : prefs.facets);

/**
 * The button that shows the facets or hides them.
 * @param {import("../app.js").App} app
 */
export function facetsButton(app) {
  const title = facetsShown(app) ? "Hide facets" : "Show facets";
  return h("button", {
    type: "button", class: "icon", title, "aria-label": "Facets", "aria-pressed": facetsShown(app),
    onclick: () => {
      if (narrow.matches) app.facets = !app.facets;
      else prefer("facets", !prefs.facets);
      app.redraw();
    },
  }, icon("filter"));
}

export class Facets {
  /**
   * Dimensions of which more values are shown.
   * @type {Set<string>}
   */
  #long = new Set();
  /**
   * Dimensions whose values can be looked for, and the question that showed so many of them: while it is asked again, the fields stay.
   * @type {{question: string, dimensions: Set<string>}}
   */
  #sought = { question: "", dimensions: new Set() };
  /** What is looked for among the values of one dimension. */
  #find = { dimension: "", text: "" };

  /** @param {import("../app.js").App} app @param {import("../lib/search.js").Search} search */
  constructor(app, search) {
    this.app = app;
    this.answer = search.answer;
    /**
     * More values of the long ones.
     * @type {Resource<any>}
     */
    this.more = new Resource(app.redraw);
    /** @type {Resource<any>} */
    this.found = new Resource(app.redraw);
  }

  draw() {
    const { app } = this;
    const by = [...this.#long].sort().join(",");
    if (by) this.more.want(app.key("facets", by), (signal) => app.query("facets", { ...app.question(), by, limit: "100" }, signal));
    const question = JSON.stringify(app.question());
    if (question !== this.#sought.question) this.#sought = { question, dimensions: new Set() };
    if (this.answer.failure && !this.answer.loading && !this.answer.data) return null; // the histogram says why
    return h("aside", { class: "facets", "aria-label": "Facets" }, answered(app, this.answer, "facets", (data) => grammar.dimensions.map((d) => this.#facet(d, data))));
  }

  /**
   * The answer for a dimension: with a part of a value, the server looks among all of them.
   * @param {string} dimension @param {any} data
   */
  #answerFor(dimension, data) {
    const { app } = this;
    const text = this.#find.text.trim();
    if (this.#find.dimension !== dimension || !text) return this.#long.has(dimension) && this.more.current && this.more.data.facets[dimension] ? { ...this.more.data, longer: true } : data;
    const q = grammar.add(app.state.q, { field: dimension, value: `*${text}*`, not: false });
    this.found.want(app.key("find", q), (signal) => app.query("facets", { ...app.question(), ...grammar.parameters(q), by: dimension, limit: "50" }, signal));
    return this.found.data ?? data;
  }

  /** @param {string} dimension @param {any} all */
  #facet(dimension, all) {
    const data = this.#answerFor(dimension, all);
    const some = data !== all && !data.longer; // those that were looked for
    /** @type {{value: string, count: number}[]} */
    const values = data.facets?.[dimension] ?? [];
    const rest = data.other?.[dimension] ?? 0;
    const distinct = all.distinct?.[dimension] ?? values.length;
    if (!some && (!values.length || values.length === 1 && values[0].value === "" && rest === 0)) return null;
    const most = Math.max(...values.map((v) => v.count), 1);
    const long = this.#long.has(dimension);
    const shown = long || some ? values : values.slice(0, 8);
    const hidden = rest + values.slice(shown.length).reduce((n, v) => n + v.count, 0);
    const found = some ? data.distinct?.[dimension] ?? values.length : distinct;
    const left = found - shown.length;
    if (distinct > 20 && !this.answer.foreign) this.#sought.dimensions.add(dimension);
    return h("section", { class: "facet", key: dimension },
      h("h3", { id: "facet-" + dimension }, dimension, distinct > 8 && h("span", { class: "hint" }, some ? ` ${human(found)} of ${human(distinct)}` : ` ${human(distinct)}`)),
      (this.#sought.dimensions.has(dimension) || long) && h("input", {
        type: "search", class: "find", value: this.#find.dimension === dimension ? this.#find.text : "", "aria-label": `Find a ${dimension}`, placeholder: `Find a ${dimension}`, autocomplete: "off", spellcheck: "false",
        oninput: (/** @type {Event} */ e) => { this.#find = { dimension, text: /** @type {HTMLInputElement} */ (e.target).value }; this.app.redraw(); },
      }),
      h("ul", { "aria-labelledby": "facet-" + dimension }, shown.map((v) => this.#value(dimension, v, most))),
      some && !values.length && h("p", { class: "quiet" }, "No value contains this text."),
      some ? left > 0 && h("p", { class: "hint" }, `${human(left)} more: write more of the name.`) : (hidden > 0 || long) && h("button", {
        type: "button", class: "plain more", onclick: () => {
          this.#find = { dimension: "", text: "" };
          if (long) this.#long.delete(dimension);
          else this.#long.add(dimension);
          this.app.redraw();
        },
      }, long ? "Show fewer" : `${human(left)} more ${left === 1 ? "value" : "values"}`));
  }

  /** @param {string} dimension @param {{value: string, count: number}} v @param {number} most */
  #value(dimension, v, most) {
    const { app } = this;
    const asked = grammar.asks(app.state.q, dimension, v.value);
    const term = { field: dimension, value: v.value, not: false };
    const name = clear(v.value) || grammar.lacking(dimension);
    return h("li", { key: v.value, class: asked ? "asked" : "" },
      h("button", {
        type: "button", class: "plain value", "aria-pressed": asked === "with", title: v.value, disabled: v.value === "", "data-facet": `${dimension}:${v.value}`,
        onclick: () => (asked ? app.remove(term) : app.add(term)),
      },
        h("span", { class: "share" + (v.value === "Warning" && dimension === "type" ? " warning" : ""), css: { width: `${(v.count / most) * 100}%` } }),
        h("span", { class: "name" }, name), h("span", { class: "n", title: v.count.toLocaleString("en") }, human(v.count))),
      v.value !== "" && choose(app, [term], `${dimension} ${name}`));
  }
}
