// The menu of saved and recent searches, beside the search box.

import { h } from "../lib/dom.js";
import { forgetRecent, save, searches, unsave } from "../lib/searches.js";
import { icon } from "./icons.js";
import { Menu } from "./menu.js";

export class Searches {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.menu = new Menu(app.redraw);
  }

  draw() {
    return this.menu.draw({ class: "icon", title: "Saved and recent searches", "aria-label": "Saved and recent searches" }, icon("star"), "Searches", () => this.#panel());
  }

  #panel() {
    const { app } = this;
    const { view, q } = app.state;
    const go = () => this.menu.set(false);
    return [
      h("section", { key: "saved" }, h("h3", null, "Saved"),
        searches.saved.map((s) => h("div", { class: "kept", key: s.name }, h("a", { href: s.to, onclick: go }, s.name),
          h("button", { type: "button", class: "plain icon", title: "Remove", "aria-label": `Remove ${s.name}`, onclick: () => { unsave(s); app.redraw(); } }, icon("close")))),
        h("form", { class: "line", onsubmit: (/** @type {SubmitEvent} */ e) => this.#save(e) },
          h("input", { name: "name", "aria-label": "Name of this search", placeholder: "Name of this search", autocomplete: "off", required: true, maxlength: 80, autofocus: true, ref: (/** @type {HTMLInputElement} */ e) => (e.value = q || view) }),
          h("button", { type: "submit" }, "Save"))),
      searches.recent.length > 0 && h("section", { key: "recent" }, h("h3", null, "Recent"),
        searches.recent.map((r) => h("div", { class: "kept", key: r }, h("a", { href: app.href({ q: r, event: "" }), onclick: go }, r))),
        h("button", { type: "button", class: "plain more", onclick: () => { forgetRecent(); app.redraw(); } }, "Forget these")),
      h("p", { class: "hint" }, "In this browser only. Signing out forgets the recent ones."),
    ];
  }

  /** @param {SubmitEvent} e */
  #save(e) {
    e.preventDefault();
    const name = String(new FormData(/** @type {HTMLFormElement} */ (e.target)).get("name")).trim();
    if (!name) return;
    save({ name, to: this.app.href({ event: "", revision: "" }) });
    this.app.say(`Saved as ${name}`);
    this.menu.set(false);
  }
}
