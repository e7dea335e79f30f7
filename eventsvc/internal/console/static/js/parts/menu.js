// A button that opens a panel below it. The panel closes by Escape, by a click elsewhere,
// or when the focus leaves it.

import { h } from "../lib/dom.js";

export class Menu {
  open = false;
  /** @type {HTMLElement|null} */
  #host = null;

  /** @param {() => void} redraw */
  constructor(redraw) {
    this.redraw = redraw;
    addEventListener("pointerdown", this.#elsewhere);
    addEventListener("focusin", this.#elsewhere);
  }

  /**
   * Closes the panel when something else is used. What surrounds it gets the focus when a
   * label within is pressed, and is not something else.
   * @param {Event} e
   */
  #elsewhere = (e) => {
    if (this.open && this.#host && e.target instanceof Node && !this.#host.contains(e.target) && !e.target.contains(this.#host)) this.set(false);
  };

  /** Ends it, with what listens for it. */
  stop() {
    removeEventListener("pointerdown", this.#elsewhere);
    removeEventListener("focusin", this.#elsewhere);
  }

  /** @param {boolean} open */
  set(open) {
    this.open = open;
    this.redraw();
  }

  /**
   * @param {Record<string, any>} button its properties @param {import("../lib/dom.js").Child} label
   * @param {string} title of the panel @param {() => import("../lib/dom.js").Child} panel
   */
  draw(button, label, title, panel) {
    return h("div", {
      class: "menu", ref: (/** @type {HTMLElement} */ e) => (this.#host = e),
      onkeydown: (/** @type {KeyboardEvent} */ e) => {
        if (e.key !== "Escape" || !this.open) return;
        e.stopPropagation();
        this.set(false);
        this.#host?.querySelector("button")?.focus();
      },
    },
      h("button", { type: "button", "aria-expanded": this.open, "aria-haspopup": "dialog", ...button, onclick: () => this.set(!this.open) }, label),
      this.open && h("div", { class: "panel", role: "dialog", "aria-label": title, ref: (/** @type {HTMLElement} */ e) => /** @type {HTMLElement|null} */ (e.querySelector("[autofocus]"))?.focus() }, panel()));
  }
}
