// The sign-in: a token that is pasted, or a client that gets its own.

import { Failure } from "../lib/api.js";
import { h } from "../lib/dom.js";

export class SignIn {
  /** @type {"token"|"client"} */
  mode;
  busy = false;
  failure = "";

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.mode = app.config.tokenURL ? "client" : "token";
  }

  draw() {
    const { app } = this;
    if (app.session.open) return null;
    return h("dialog", {
      class: "signin", key: "signin", "aria-labelledby": "signin-title", ref: (/** @type {HTMLDialogElement} */ d) => d.showModal(),
      oncancel: (/** @type {Event} */ e) => e.preventDefault(),
    },
      h("h1", { id: "signin-title" }, "Sign in"),
      app.session.reason ? h("p", { class: "note warn", role: "alert" }, app.session.reason)
        : h("p", null, "It is kept in the memory of this tab, and gone when the tab is closed."),
      app.config.tokenURL && h("div", { class: "choice", role: "radiogroup", "aria-label": "With what" },
        this.#choice("client", "Client and secret"), this.#choice("token", "A token")),
      h("form", { onsubmit: (/** @type {SubmitEvent} */ e) => this.#submit(e), key: this.mode },
        this.mode === "token"
          ? h("label", null, "Token", h("textarea", { name: "token", rows: 4, required: true, autofocus: true, spellcheck: "false", autocomplete: "off", autocapitalize: "off" }))
          : [h("label", null, "Client", h("input", { name: "id", required: true, autofocus: true, spellcheck: "false", autocomplete: "username", autocapitalize: "off" })),
            h("label", null, "Secret", h("input", { name: "secret", type: "password", required: true, autocomplete: "current-password" })),
            h("label", null, "Scope, if not all that the client may have", h("input", { name: "scope", spellcheck: "false", autocomplete: "off" })),
            h("p", { class: "hint" }, `Sent to ${app.config.tokenURL} and nowhere else.`)],
        h("p", { class: "error", role: "alert" }, this.failure),
        h("p", { class: "actions" }, h("button", { type: "submit", class: "primary", disabled: this.busy }, this.busy ? "Signing in …" : "Sign in"),
          h("a", { href: "help/how-to/console.html#sign-in", target: "_blank", rel: "noopener" }, "Where do I get that?"))));
  }

  /** @param {"token"|"client"} mode @param {string} title */
  #choice(mode, title) {
    return h("label", { class: "segment" }, h("input", {
      type: "radio", name: "mode", value: mode, checked: this.mode === mode,
      onchange: () => { this.mode = mode; this.failure = ""; this.app.redraw(); },
    }), h("span", null, title));
  }

  /** @param {SubmitEvent} e */
  async #submit(e) {
    e.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (e.target));
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "");
    this.busy = true;
    this.failure = "";
    this.app.redraw();
    try {
      if (this.mode === "token") this.app.session.useToken(text("token"));
      else await this.app.session.useClient({ id: text("id"), secret: text("secret"), scope: text("scope").trim() });
    } catch (err) {
      this.failure = err instanceof Failure ? err.message : String(err);
    }
    this.busy = false;
    this.app.redraw();
  }
}
