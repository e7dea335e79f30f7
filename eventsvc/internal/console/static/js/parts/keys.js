// The keys, and the page that lists them.

import { h } from "../lib/dom.js";
import { prefs } from "../lib/prefs.js";
import { hour, rfc3339 } from "../lib/time.js";

/** @type {[string, [string, string][]][]} */
const list = [
  ["Everywhere", [["/", "search"], ["1 – 5", "overview, events, live, groups, changes"], ["t", "time range"], ["[  ]", "earlier, later by a range"], ["-", "twice the range"],
    ["r", "ask again"], ["c", "copy a link that shows this"], ["?", "these keys"], ["Esc", "close what is open"]]],
  ["Rows", [["j  k  ↓  ↑", "next, previous row"], ["Home  End", "first, last row that is loaded"], ["Enter", "details"], ["e", "all of the note"], ["o", "life of the object"], ["s", "same reason"]]],
  ["Live", [["p", "pause, go on"], ["n", "show the newest"]]],
  ["Histogram", [["←  →", "one bar on"], ["Shift ←  →", "select bars"], ["Enter", "show only what is selected"]]],
];

const views = ["overview", "events", "live", "groups", "changes"];

export class KeyHelp {
  open = false;

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
  }

  /** @param {boolean} open */
  set(open) {
    this.open = open;
    this.app.redraw();
  }

  draw() {
    if (!this.open) return null;
    return h("dialog", { class: "keys", key: "keys", "aria-labelledby": "keys-title", ref: (/** @type {HTMLDialogElement} */ d) => d.showModal(), onclose: () => this.set(false) },
      h("h1", { id: "keys-title" }, "Keys"),
      h("div", { class: "key-lists" }, list.map(([title, keys]) => h("section", { key: title }, h("h2", null, title), h("dl", null, keys.map(([key, what]) =>
        h("div", { key }, h("dt", null, key.split("  ").map((k) => h("kbd", null, k))), h("dd", null, what))))))),
      h("p", { class: "actions" }, h("button", { type: "button", autofocus: true, onclick: () => this.set(false) }, "Close"),
        h("a", { href: "help/reference/console.html#keys", target: "_blank", rel: "noopener" }, "More about this page")));
  }
}

/**
 * Handles the keys of the whole page. Keys of one letter can be switched off in the
 * settings (WCAG 2.1.4), and do nothing while a text is written.
 * @param {import("../app.js").App} app @param {import("./frame.js").Frame} frame
 */
export function keyboard(app, frame) {
  /** @type {Record<string, () => void>} */
  const keys = {
    "/": () => frame.search.focus(), "?": () => frame.help.set(true), t: () => frame.range.menu.set(true), r: () => app.refresh(), c: () => frame.links.copy(),
    "[": () => shift(app, -1), "]": () => shift(app, 1), "-": () => widen(app),
  };
  views.forEach((view, i) => (keys[String(i + 1)] = () => app.go({ view, event: "" })));
  addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    if (e.key === "Escape") {
      if (app.state.event) app.go({ event: "" });
      return;
    }
    if (e.target instanceof Element && e.target.matches("input:not([type=checkbox], [type=radio]), textarea, select")) return;
    if (e.key.length === 1 && !prefs.keys) return;
    if (frame.view?.key?.(e.key)) {
      e.preventDefault();
    } else if (e.key in keys) {
      e.preventDefault();
      keys[e.key]();
    }
  });
}

/**
 * Moves the range by its own length.
 * @param {import("../app.js").App} app @param {number} by
 */
export function shift(app, by) {
  const [from, to] = app.range();
  const length = to - from;
  app.go({ from: rfc3339(from + by * length), to: rfc3339(to + by * length), revision: "" });
}

/**
 * Doubles the range around its middle.
 * @param {import("../app.js").App} app
 */
export function widen(app) {
  const [from, to] = app.range();
  const more = Math.max((to - from) / 2, hour / 60);
  app.go({ from: rfc3339(from - more), to: app.state.to === "now" ? "now" : rfc3339(to + more), revision: "" });
}
