// The search box: chips of the terms that hold, and a text in which a new one is written.

import { h } from "../lib/dom.js";
import * as grammar from "../lib/grammar.js";
import { Completion } from "./completion.js";
import { icon } from "./icons.js";
import { patterned } from "./text.js";

export class SearchBox {
  draft = "";
  /**
   * The chips: those of the search before, until the terms of a new one are known.
   * @type {grammar.Term[]}
   */
  #terms = [];
  #chosen = -1;
  #open = false;
  /** @type {HTMLInputElement|null} */
  #input = null;

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.completion = new Completion(app);
  }

  /** Leads the person here, and shows what can be written. */
  focus() {
    this.#input?.focus();
    this.#input?.select();
    this.#open = true;
    this.app.redraw();
  }

  draw() {
    const { app } = this;
    const { q } = app.state;
    const mistaken = q && app.reader.of(q)?.mistake; // the view says so
    const terms = this.#terms = mistaken ? grammar.parse(q) : grammar.termsOf(q) ?? this.#terms;
    const { offers, chosen } = this.#choice();
    const wrong = this.draft && !offers.length && app.reader.of(this.draft)?.mistake; // what has completions is not finished
    return h("form", { class: "search", role: "search", "aria-label": "Events", onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); this.#commit(); } },
      h("div", { class: this.draft || !terms.length ? "box wide-draft" : "box", onclick: (/** @type {MouseEvent} */ e) => { if (e.target === e.currentTarget) this.focus(); } },
        icon("search"),
        terms.map((t, i) => this.#chip(t, i)),
        h("input", {
          type: "text", role: "combobox", "aria-label": "Search: words, field:value, -not, OR", "aria-expanded": offers.length > 0, "aria-controls": "offers", "aria-autocomplete": "list",
          "aria-activedescendant": chosen >= 0 ? `offer-${chosen}` : undefined, "aria-invalid": Boolean(mistaken || wrong), autocomplete: "off", spellcheck: "false", autocapitalize: "off", enterkeyhint: "search",
          placeholder: terms.length ? "" : "Search: reason:BackOff  -namespace:dev  \"image pull\"", value: this.draft,
          ref: (/** @type {HTMLInputElement} */ e) => (this.#input = e),
          oninput: (/** @type {Event} */ e) => { this.draft = /** @type {HTMLInputElement} */ (e.target).value; this.#chosen = -1; this.#open = true; app.redraw(); },
          onclick: () => { this.#open = true; app.redraw(); },
          onblur: () => { this.#open = false; app.redraw(); },
          onkeydown: (/** @type {KeyboardEvent} */ e) => this.#key(e),
        })),
      wrong && h("p", { class: "wrong", role: "alert" }, `Your search, ${wrong}.`),
      offers.length > 0 && h("ul", { class: "offers", id: "offers", role: "listbox", "aria-label": "Completions" }, offers.map((o, i) =>
        h("li", {
          id: `offer-${i}`, role: "option", "aria-selected": i === chosen, key: o.text,
          onpointerdown: (/** @type {Event} */ e) => { e.preventDefault(); this.#take(o); },
        }, h("span", { class: "offer" }, o.label), h("span", { class: "hint" }, o.help)))));
  }

  /** @param {import("../lib/grammar.js").Term} t @param {number} i */
  #chip(t, i) {
    const text = grammar.write(t);
    const turn = { ...t, not: !t.not };
    return h("span", { class: t.not ? "chip not" : "chip", key: `${text} ${i}` },
      h("button", { type: "button", class: "chip-text", title: t.not ? "Show only these" : "Leave these out instead", "aria-label": `${text}: turn round`, onclick: () => this.app.add(turn) },
        t.field === "()" ? [t.not && h("span", { class: "chip-field" }, "not "), `(${t.value})`] : t.field ? [h("span", { class: "chip-field" }, (t.not ? "not " : "") + t.field), " ", t.field === "pattern" ? patterned(t.value) : t.value] : [t.not && h("span", { class: "chip-field" }, "not "), `“${t.value}”`]),
      h("button", { type: "button", class: "chip-remove", title: "Remove", "aria-label": `Remove ${text}`, onclick: () => { this.app.remove(t); this.#input?.focus(); } }, icon("close")));
  }

  /** The completions of the draft, and which of them is chosen. */
  #choice() {
    const offers = this.#open ? this.completion.offers(this.draft) : [];
    return { offers, chosen: Math.min(this.#chosen, offers.length - 1) };
  }

  /** @param {KeyboardEvent} e */
  #key(e) {
    const { offers, chosen } = this.#choice();
    const { app } = this;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      if (!this.#open) this.#open = true;
      else if (!offers.length) return;
      const step = e.key === "ArrowDown" ? 1 : -1;
      this.#chosen = (chosen + step + offers.length + (chosen < 0 && step < 0 ? 1 : 0)) % Math.max(1, offers.length);
    } else if (e.key === "Escape") {
      if (offers.length) this.#open = false;
      else if (this.draft) this.draft = "";
      else /** @type {HTMLElement} */ (e.target).blur();
    } else if ((e.key === "Tab" || e.key === "Enter") && chosen >= 0) {
      this.#take(offers[chosen]);
    } else if (e.key === "Tab" && !e.shiftKey && this.draft && offers.length === 1) {
      this.#take(offers[0]);
    } else if (e.key === "Backspace" && this.draft === "") {
      const { q } = app.state;
      const terms = grammar.termsOf(q) ?? [];
      if (!q) return;
      this.draft = terms.length ? grammar.write(terms[terms.length - 1]) : q;
      app.go({ q: grammar.writeAll(terms.slice(0, -1)) });
    } else {
      return;
    }
    e.preventDefault();
    app.redraw();
  }

  /** @param {import("./completion.js").Offer} offer */
  #take(offer) {
    this.draft = offer.text;
    this.#chosen = -1;
    if (offer.done) this.#commit();
    this.#input?.focus();
    this.app.redraw();
  }

  async #commit() {
    const { app, draft } = this;
    if (!draft.trim()) return app.redraw();
    const reading = await app.reader.read(draft).catch(() => ({ terms: grammar.parse(draft), mistake: "" })); // the answer will say why
    if (reading.mistake || this.draft !== draft) return app.redraw();
    const q = reading.terms.reduce(grammar.add, app.state.q);
    this.draft = "";
    this.#chosen = -1;
    this.#open = false;
    app.go({ q });
    app.redraw();
  }
}
