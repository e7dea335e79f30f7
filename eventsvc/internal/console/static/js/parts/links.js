// Ways to take what is shown elsewhere: a link to the same rows, and the same question for
// other programs.

import { h } from "../lib/dom.js";
import { clear } from "../lib/event.js";
import { asked, takeAway } from "../lib/takeaway.js";
import { commands } from "./commands.js";
import { icon } from "./icons.js";
import { Menu } from "./menu.js";

/**
 * Copies a text, and says so.
 * @param {import("../app.js").App} app @param {string} text @param {string} what
 */
export async function copy(app, text, what) {
  try {
    await navigator.clipboard.writeText(text);
    app.say(`${what} copied`);
  } catch {
    app.say(`The browser did not allow ${what.toLowerCase()} to be copied`);
  }
}

/**
 * A button that copies.
 * @param {import("../app.js").App} app @param {string} text @param {string} what
 */
export const copyButton = (app, text, what) =>
  h("button", { type: "button", class: "plain icon copy", title: `Copy ${what.toLowerCase()}`, "aria-label": `Copy ${what.toLowerCase()}`, onclick: () => copy(app, text, what) }, icon("copy"));

/** @param {import("../app.js").App} app */
export function permalinkMenu(app) {
  const menu = new Menu(app.redraw);
  return {
    copy: () => copy(app, app.permalink(), "Link"),
    draw: () => menu.draw({ class: "icon", title: "Link to this (c), and the same elsewhere", "aria-label": "Link to this, and the same elsewhere" }, icon("link"), "Elsewhere", () => [
      h("div", { class: "same" }, h("h3", null, "A link that shows the same rows"), h("p", { class: "hint" }, "With absolute times and the state that is shown. Whoever opens it has to sign in."),
        line(app, app.permalink(), "Link")),
      h("div", { class: "take" }, h("h3", null, `The ${asked(app).what} as a file`), h("p", { class: "hint" }, app.state.view === "changes" ? "At most 100." : "At most 20,000, in their order."),
        /** @type {const} */ (["csv", "json"]).map((form) => h("button", { type: "button", key: form, onclick: () => takeAway(app, form) }, form.toUpperCase()))),
      commands(app).map((c) => h("div", { class: "same", key: c.name }, h("h3", null, c.name), c.lacks && h("p", { class: "hint" }, `Without ${c.lacks}.`), line(app, c.text, c.name))),
    ]),
  };
}

/** @param {import("../app.js").App} app @param {string} text @param {string} what */
export const line = (app, text, what) => h("div", { class: "line" }, h("code", { tabindex: "0" }, clear(text)), copyButton(app, text, what));
