// The two buttons beside every value: one adds it to the search, the other leaves it out.

import { h } from "../lib/dom.js";
import * as grammar from "../lib/grammar.js";
import { icon } from "./icons.js";

/** @typedef {import("../lib/grammar.js").Term} Term */

/**
 * @param {import("../app.js").App} app
 * @param {Term[]} terms that find the events with the value; several are left out together
 * @param {string} name of the value, read to people who cannot see which value the buttons belong to
 * @param {string} [tabindex]
 */
export function choose(app, terms, name, tabindex) {
  const { view } = app.state;
  const to = searched.has(view) ? {} : { view: "events", event: "" };
  const only = () => app.go({ ...to, q: terms.reduce(grammar.add, app.state.q) });
  const out = () => app.go({ ...to, q: grammar.add(app.state.q, terms.length === 1 ? { ...terms[0], not: true } : { field: "()", value: grammar.writeAll(terms), not: true }) });
  return h("span", { class: "choose" }, /** @type {[string, string, string, () => void][]} */ ([["plus", "Only these", "Only", only], ["minus", "Leave these out", "Leave out", out]]).map(([glyph, title, verb, act]) =>
    h("button", {
      type: "button", class: `plain icon ${glyph}`, key: glyph, title, tabindex, "aria-label": `${verb} ${name}`,
      onclick: (/** @type {Event} */ e) => { e.stopPropagation(); act(); },
    }, icon(glyph))));
}

/** The views that the search chooses in; from others it leads to the events. */
const searched = new Set(["overview", "events", "live", "groups", "changes"]);
