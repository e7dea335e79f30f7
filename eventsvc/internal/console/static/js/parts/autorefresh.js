// Asks again by itself, but not while somebody reads: nothing moves below an eye.

import { h } from "../lib/dom.js";

/** @type {[number, string][]} */
const pauses = [[0, "Off"], [10, "10 s"], [60, "1 min"]];

export class AutoRefresh {
  #seconds = 0;
  #paused = false;
  /** @type {ReturnType<typeof setInterval>|undefined} */
  #timer;

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
  }

  /** Whether somebody reads: a row is open or has the focus, a list or the page is scrolled, a list is pointed at, a text is selected or written. */
  get #reads() {
    const at = document.activeElement;
    return document.hidden || this.app.state.event !== "" || (document.querySelector(".table")?.scrollTop ?? 0) > 0 || scrollY > 0 || document.querySelector(".brief:hover, .changes:hover") || at?.closest(".tbody") ||
      !document.getSelection()?.isCollapsed || at instanceof HTMLInputElement && at.type !== "checkbox" || document.querySelector(".panel, dialog[open]") !== null;
  }

  draw() {
    const { app } = this;
    if (app.state.to !== "now" || app.state.revision || app.state.view === "live") return null; // what is over does not change
    return h("label", { class: "auto" }, h("span", { class: "hint", role: "status" }, this.#paused ? "Paused" : "Refresh"), h("select", {
      "aria-label": "Refresh by itself", value: String(this.#seconds),
      onchange: (/** @type {Event} */ e) => this.#set(Number(/** @type {HTMLSelectElement} */ (e.target).value)),
    }, pauses.map(([n, title]) => h("option", { value: String(n), key: n }, title))));
  }

  /** @param {number} seconds */
  #set(seconds) {
    clearInterval(this.#timer);
    this.#seconds = seconds;
    this.#paused = false;
    if (seconds) this.#timer = setInterval(() => this.#again(), seconds * 1000);
    this.app.redraw();
  }

  #again() {
    const { app } = this;
    if (!app.session.open || app.state.to !== "now" || app.state.revision || app.state.view === "live") return;
    this.#paused = Boolean(this.#reads);
    if (this.#paused) app.redraw();
    else app.refresh();
  }
}
