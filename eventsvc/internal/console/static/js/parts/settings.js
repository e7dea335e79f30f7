// The settings: appearance, time zone, keys; and who is signed in.

import { h } from "../lib/dom.js";
import { prefer, prefs } from "../lib/prefs.js";
import { forgetRecent } from "../lib/searches.js";
import { absolute, reading, relative, zoneName } from "../lib/time.js";
import { icon } from "./icons.js";
import { Menu } from "./menu.js";

/** Applies the preferences to the page. */
export function dress() {
  document.documentElement.dataset.theme = prefs.theme;
  reading.zone = prefs.zone;
}

/**
 * The zone of all times, and what changes it.
 * @param {import("../app.js").App} app
 */
export const zoneButton = (app) => h("button", {
  type: "button", class: "zone", title: `Times are ${prefs.zone === "utc" ? "in UTC: show those of this machine" : "those of this machine: show UTC"}`, "aria-label": `Times are in ${zoneName()}: change the zone`,
  onclick: () => { prefer("zone", prefs.zone === "utc" ? "local" : "utc"); dress(); app.redraw(); },
}, zoneName());

export class Settings {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.menu = new Menu(app.redraw);
  }

  draw() {
    return this.menu.draw({ class: "plain icon", title: "Settings", "aria-label": "Settings" }, icon("gear"), "Settings", () => this.#panel());
  }

  #panel() {
    const { session } = this.app;
    return [
      this.#choice("theme", "Appearance", [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]]),
      this.#choice("zone", "Times", [["local", "Local"], ["utc", "UTC"]]),
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: prefs.keys, onchange: () => this.#set("keys", !prefs.keys) }), "Keys of one letter, as j and k"),
      session.open && h("div", { class: "who" },
        h("p", null, "Signed in", session.subject && [" as ", h("strong", null, session.subject)]),
        session.expires > 0 && h("p", { class: "hint", title: absolute(session.expires) }, session.renews ? "The token is renewed by itself." : `The token expires ${relative(session.expires)}.`),
        h("button", { type: "button", onclick: () => { this.menu.set(false); forgetRecent(); session.end(); } }, "Sign out")),
      h("p", { class: "hint" }, `eventsvc ${this.app.config.version}`),
    ];
  }

  /** @param {"theme"|"zone"} name @param {string} title @param {[string, string][]} values */
  #choice(name, title, values) {
    return h("fieldset", null, h("legend", null, title), h("div", { class: "choice" }, values.map(([value, label]) =>
      h("label", { class: "segment", key: value }, h("input", { type: "radio", name, value, checked: prefs[name] === value, onchange: () => this.#set(name, value) }), h("span", null, label)))));
  }

  /** @param {"theme"|"zone"|"keys"} name @param {any} value */
  #set(name, value) {
    prefer(name, value);
    dress();
    this.app.redraw();
  }
}
