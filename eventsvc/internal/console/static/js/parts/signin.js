// The sign-in: at a provider, or with a token that is pasted, or a client that gets its own.

import { Failure } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { minute, second } from "../lib/time.js";
import { icon } from "./icons.js";

/** @typedef {import("../lib/oidc.js").Provider} Provider */

export class SignIn {
  /** @type {"token"|"client"} */
  mode;
  busy = false;
  failure = "";
  /** Whether a person whose sign-in has ended wants to choose another way. */
  #choosing = false;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #looking;

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.mode = app.config.tokenURL ? "client" : "token";
  }

  /** What is said while the views stay as they are, because the person can sign in again where they were. */
  bar() {
    const { session } = this.app;
    if (!session.ended || this.#choosing) return null;
    const { issuer } = session.ended;
    const provider = this.app.config.signIn.find((p) => p.issuer === issuer) ?? session.ended;
    return h("p", { class: "note warn ended", role: "alert", key: "ended" }, icon("alert"), h("span", null, session.reason || `Your sign-in at ${provider.name} has ended.`, " What you see stays."),
      h("button", { type: "button", class: "plain", disabled: session.busy !== "", onclick: () => session.useProvider(provider) }, "Sign in again"),
      h("button", { type: "button", class: "plain", onclick: () => { this.#choosing = true; this.app.redraw(); } }, "Another way"));
  }

  draw() {
    const { session, config } = this.app;
    if (session.open) this.#choosing = false;
    if (session.open || (session.ended && !this.#choosing)) return null;
    const providers = config.signIn;
    return h("dialog", {
      class: "signin", key: "signin", "aria-labelledby": "signin-title", ref: (/** @type {HTMLDialogElement} */ d) => { d.showModal(); this.#look(); },
      oncancel: (/** @type {Event} */ e) => e.preventDefault(),
    },
      h("h1", { id: "signin-title" }, session.lasting.away ? "The server cannot be reached" : "Sign in"),
      session.lasting.away ? [
        h("p", { role: "alert" }, "It did not say whether you are still signed in. Look whether it runs, and whether this machine is connected."),
        h("p", { class: "actions" }, h("button", { type: "button", class: "primary", onclick: () => session.resume(providers).then(this.app.redraw) }, "Ask again")),
      ] : session.busy ? h("p", { role: "status" }, `Signing in with ${session.busy} …`) : [
        session.reason ? h("p", { class: "note warn", role: "alert" }, h("span", null, session.reason, providers.length > 0 && [" ", h("a", { href: "help/how-to/sign-in.html#if-it-fails", target: "_blank", rel: "noopener" }, "More about this")]))
          : session.left ? this.#left(session.left)
            : h("p", null, config.sessions ? "You stay signed in until you sign out or close the browser, at most 12 hours." : "What you sign in with is kept in the memory of this tab, and gone when the tab is closed."),
        providers.length > 0 && h("div", { class: "providers", key: "providers" }, providers.map((p) => this.#provider(p, providers.length === 1))),
        providers.length > 0 ? h("details", { key: "others" }, h("summary", null, config.tokenURL ? "With a client and its secret, or a token" : "With a token"), this.#others()) : this.#others(),
      ]);
  }

  /** @param {import("../lib/oidc.js").Grant} grant */
  #left({ exit, provider }) {
    return h("p", { class: "note" }, h("span", null, "You are signed out here. ", h("a", { href: exit }, `Also sign out of ${provider.name}`)));
  }

  /** @param {Provider} p @param {boolean} only */
  #provider(p, only) {
    return [
      h("button", { type: "button", class: only ? "primary" : "", disabled: p.unavailable !== "", onclick: () => this.app.session.useProvider(p), key: p.issuer }, `Sign in with ${p.name}`),
      p.unavailable !== "" && h("p", { class: "hint", key: "why " + p.issuer }, `${p.name}: ${p.unavailable}`),
    ];
  }

  /** Looks whether there is more to choose from: for a form that appears late, and as long as a provider is away. */
  #look() {
    const { app } = this;
    const late = Date.now() - app.configured > minute;
    clearTimeout(this.#looking);
    if (!late && app.config.signIn.every((p) => p.unavailable === "")) return;
    this.#looking = setTimeout(async () => {
      if (app.session.open) return;
      await app.reconfigure();
      this.#look();
    }, late ? 0 : 5 * second);
  }

  #others() {
    const { tokenURL, signIn } = this.app.config;
    const autofocus = signIn.length === 0;
    return [
      tokenURL && h("div", { class: "choice", role: "radiogroup", "aria-label": "With what" }, this.#choice("client", "Client and secret"), this.#choice("token", "A token")),
      h("form", { onsubmit: (/** @type {SubmitEvent} */ e) => this.#submit(e), key: this.mode },
        this.mode === "token"
          ? h("label", null, "Token", h("textarea", { name: "token", rows: 4, required: true, autofocus, spellcheck: "false", autocomplete: "off", autocapitalize: "off" }))
          : [h("label", null, "Client", h("input", { name: "id", required: true, autofocus, spellcheck: "false", autocomplete: "username", autocapitalize: "off" })),
            h("label", null, "Secret", h("input", { name: "secret", type: "password", required: true, autocomplete: "current-password" })),
            h("label", null, "Scope, if not all that the client may have", h("input", { name: "scope", spellcheck: "false", autocomplete: "off" })),
            h("p", { class: "hint" }, `Sent to ${tokenURL} and nowhere else.`)],
        h("p", { class: "error", role: "alert" }, this.failure),
        h("p", { class: "actions" }, h("button", { type: "submit", class: signIn.length ? "" : "primary", disabled: this.busy }, this.busy ? "Signing in …" : "Sign in"),
          h("a", { href: "help/how-to/console.html#sign-in", target: "_blank", rel: "noopener" }, "Where do I get that?"))),
    ];
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
