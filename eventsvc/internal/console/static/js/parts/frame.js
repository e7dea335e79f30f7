// What surrounds every view: tabs, search, range, the drawer, and the dialogs.

import { brushed } from "../lib/address.js";
import { h } from "../lib/dom.js";
import { clock, duration } from "../lib/time.js";
import { AutoRefresh } from "./autorefresh.js";
import { Drawer } from "./drawer.js";
import { facetsButton } from "./facets.js";
import { icon } from "./icons.js";
import { KeyHelp } from "./keys.js";
import { permalinkMenu } from "./links.js";
import { Notices } from "./notices.js";
import { RangePicker } from "./rangepicker.js";
import { SearchBox } from "./searchbox.js";
import { Searches } from "./searches.js";
import { Settings, zoneButton } from "./settings.js";
import { SignIn } from "./signin.js";

/** @typedef {import("../app.js").App} App @typedef {import("../app.js").View} View */

/** The views that have a tab. */
const tabs = [["overview", "Overview"], ["events", "Events"], ["live", "Live"], ["groups", "Groups"], ["changes", "Changes"]];

export class Frame {
  /** @type {View|null} */
  view = null;
  #name = "";

  /** @param {App} app @param {Record<string, () => View>} views */
  constructor(app, views) {
    this.app = app;
    this.views = views;
    this.search = new SearchBox(app);
    this.searches = new Searches(app);
    this.range = new RangePicker(app);
    this.auto = new AutoRefresh(app);
    this.settings = new Settings(app);
    this.signin = new SignIn(app);
    this.drawer = new Drawer(app);
    this.help = new KeyHelp(app);
    this.links = permalinkMenu(app);
    this.notices = new Notices(app);
  }

  draw() {
    const { app } = this;
    app.told.clear();
    if (!Object.hasOwn(this.views, app.state.view)) app.state.view = "overview";
    if (this.#name !== app.state.view) {
      this.view?.leave?.();
      this.#name = app.state.view;
      this.view = this.views[this.#name]();
    }
    const view = /** @type {View} */ (this.view);
    const searched = this.#name !== "object"; // changes have a window instead of a range
    const title = tabs.find(([name]) => name === this.#name)?.[1] ?? app.state.name;
    document.title = `${title} – Tidings`;
    return [
      skipTo("#main", "Skip to the events"),
      skipTo(".plot", "Skip to the histogram"),
      this.#header(),
      this.signin.bar(),
      h("div", { class: "notices", key: "notices" }, this.notices.draw()),
      h("div", { class: "question", key: "question" }, searched && this.search.draw(), searched && this.#name !== "changes" && this.range.draw(), this.#tools()),
      clock.disagrees && h("p", { class: "note", role: "note", key: "clocks" }, icon("clock"),
        `The clock of this machine differs from the server's by ${duration(clock.offset)}. Times are shown by the server's clock.`),
      h("main", { id: "main", tabindex: "-1", key: "main " + this.#name, class: "view-" + this.#name, "aria-label": title },
        this.#name !== "object" && h("h1", { class: "unseen" }, title), view.draw()),
      this.drawer.draw(),
      this.signin.draw(),
      this.help.draw(),
      h("div", { class: "said", role: "status", "aria-live": "polite", key: "said" }, app.said && h("span", null, app.said)),
    ];
  }

  #header() {
    const { app } = this;
    return h("header", { class: "top", key: "top" },
      h("a", { class: "brand", href: "#/overview" }, h("img", { src: "icons/tidings.svg", alt: "", width: 22, height: 22 }), h("span", null, "Tidings")),
      h("nav", { class: "views", "aria-label": "Views" }, tabs.map(([name, title]) =>
        h("a", { href: app.href({ view: name, event: "", ...(name !== app.state.view ? { ns: "" } : {}), ...(name === "changes" && app.state.view !== "changes" ? brushed(app.state) : {}) }), "aria-current": app.state.view === name ? "page" : "false", key: name }, title))),
      h("div", { class: "corner" },
        h("a", { class: "button plain icon", href: helpOf(app.state.view), target: "_blank", rel: "noopener", title: "Help for this page", "aria-label": "Help for this page" }, icon("help")),
        this.settings.draw()));
  }

  #tools() {
    const { app } = this;
    return h("div", { class: "tools" }, zoneButton(app), this.auto.draw(), ["overview", "events"].includes(app.state.view) && facetsButton(app), this.searches.draw(),
      h("button", { type: "button", class: "icon", title: "Ask again (r)", "aria-label": "Ask again", onclick: () => app.refresh() }, icon("reload")),
      this.links.draw());
  }
}

/**
 * A link that leads the keyboard past what stands before. It is seen when it has the focus.
 * @param {string} selector @param {string} text
 */
const skipTo = (selector, text) => h("a", {
  class: "skip", href: "#main", onclick: (/** @type {Event} */ e) => {
    e.preventDefault();
    (/** @type {HTMLElement|null} */ (document.querySelector(selector)) ?? document.getElementById("main"))?.focus();
  },
}, text);

/**
 * The page of the docs about a view.
 * @param {string} view
 */
function helpOf(view) {
  return `help/reference/console.html#${view === "object" ? "one-object" : view}`;
}
