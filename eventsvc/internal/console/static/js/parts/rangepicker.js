// The range of time: presets, and both ends as text.

import { h } from "../lib/dom.js";
import { dated, duration, isRelative, parseInstant, parseRange, rfc3339, short, spelled, absolute, zoneName } from "../lib/time.js";
import { icon } from "./icons.js";
import { shift, widen } from "./keys.js";
import { Menu } from "./menu.js";

/** @type {[string, string][]} */
const presets = [["-15m", "15 minutes"], ["-1h", "1 hour"], ["-6h", "6 hours"], ["-24h", "24 hours"], ["-3d", "3 days"], ["-7d", "7 days"], ["-30d", "30 days"]];

export class RangePicker {
  failure = "";

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.menu = new Menu(app.redraw);
  }

  draw() {
    const { app } = this;
    const step = (/** @type {string} */ name, /** @type {string} */ title, /** @type {() => void} */ act) =>
      h("button", { type: "button", class: "icon", title, "aria-label": title, onclick: act }, icon(name));
    return h("div", { class: "range", role: "group", "aria-label": "Range of time" },
      step("left", "Earlier", () => shift(app, -1)),
      this.menu.draw({ class: "range-text", title: "Range of time (t)" }, [icon("clock"), h("span", null, this.title())], "Range of time", () => this.#panel()),
      step("right", "Later", () => shift(app, 1)), step("out", "Twice the range", () => widen(app)),
      app.state.revision && h("button", { type: "button", class: "pinned", title: "A link has named this state. Show the newest one.", onclick: () => app.go({ revision: "" }) },
        `State ${app.state.revision}`, icon("close")));
  }

  /** How the range is named. */
  title() {
    const { from, to } = this.app.state;
    if (to === "now") {
      const preset = presets.find(([p]) => p === from);
      if (preset) return `Last ${preset[1].replace(/^1 /, "")}`;
      if (isRelative(from)) return `Last ${spelled(from).replace(/^1 /, "")}`;
    }
    const [a, b] = this.app.range();
    const end = short(b);
    return `${short(a)} – ${to === "now" ? "now" : end.slice(0, -5) === short(a).slice(0, -5) ? end.slice(-5) : end}`;
  }

  #panel() {
    const { app } = this;
    const { from, to } = app.state;
    const history = app.head?.historyFrom;
    const text = (/** @type {string} */ t) => (isRelative(t) ? t : absolute(parseInstant(t)));
    const choose = (/** @type {string} */ begin) => { this.menu.set(false); app.go({ from: begin, to: "now", revision: "" }); };
    return [
      h("div", { class: "presets" }, presets.map(([value, title]) =>
        h("button", { type: "button", class: "plain", key: value, "aria-pressed": from === value && to === "now", onclick: () => choose(value) }, title)),
        history && h("button", { type: "button", class: "plain", onclick: () => choose(history) }, `All, since ${short(Date.parse(history))}`)),
      h("form", { class: "absolute", onsubmit: (/** @type {SubmitEvent} */ e) => this.#submit(e) },
        h("label", null, `From (${zoneName()})`, h("input", { name: "from", spellcheck: "false", autocomplete: "off", ref: (/** @type {HTMLInputElement} */ e) => (e.value = text(from)), autofocus: true })),
        h("label", null, `To (${zoneName()})`, h("input", { name: "to", spellcheck: "false", autocomplete: "off", ref: (/** @type {HTMLInputElement} */ e) => (e.value = text(to)) })),
        h("p", { class: "hint" }, "As 2026-03-04 12:00, 11-20 14:02, 14:00, yesterday 02:00, 6h or now; or both ends in the first: 14:02 to 14:07."),
        this.failure && h("p", { class: "error", role: "alert" }, this.failure),
        h("button", { type: "submit", class: "primary" }, "Show")),
    ];
  }

  /** @param {SubmitEvent} e */
  #submit(e) {
    e.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (e.target));
    /** @type {string[]} */
    const ends = [];
    this.failure = "";
    const both = parseRange(String(form.get("from")));
    for (const name of ["from", "to"]) {
      const text = both ? rfc3339(both[name === "from" ? 0 : 1]) : String(form.get(name)).trim();
      const at = parseInstant(text);
      if (Number.isNaN(at)) this.failure ||= `“${text}” is no time. Write it as 2026-03-04 12:00, 4.3.2026 12:00, 2:30pm or -6h.`;
      ends.push(Number.isNaN(at) ? text : isRelative(dated(text)) ? dated(text) : rfc3339(at));
    }
    const [from, to] = ends.map(parseInstant);
    if (!this.failure && to <= from) this.failure = `The range ends ${duration(from - to)} before it begins. Change one of the two.`;
    if (!this.failure) {
      this.menu.set(false);
      this.app.go({ from: ends[0], to: ends[1], revision: "" });
    }
    this.app.redraw();
  }
}
