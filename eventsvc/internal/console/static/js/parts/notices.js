// What is to be known whatever is looked at: clusters whose mirror is late, and what nothing comes of any more.

import { h } from "../lib/dom.js";
import { clear } from "../lib/event.js";
import { Resource } from "../lib/load.js";
import { absolute, clock, duration, minute, relative, second, short } from "../lib/time.js";
import { silenced } from "./changelist.js";
import { icon } from "./icons.js";

const few = 3;
/** So often what is silent is asked for. */
const often = 5 * minute;

export class Notices {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Resource<any>} */
    this.changes = new Resource(app.redraw);
    setInterval(() => { if (!document.hidden) app.redraw(); }, minute);
  }

  draw() {
    const { app } = this;
    if (!app.session.open) return null;
    const now = clock.now();
    const { from, to } = app.state;
    app.clusters.want(JSON.stringify([app.turn, Math.floor(now / minute), from, to]), (signal) => app.api.query("clusters", { from, to }, signal));
    if (!app.config.sessions) return null; // a dump has ended anyway
    this.changes.want(`${app.turn} ${Math.floor(now / often)}`, (signal) => app.api.query("changes", { window: "1h", limit: "50" }, signal));
    const late = (app.clusters.data?.items ?? []).filter((c) => c.late);
    const silent = (this.changes.data?.changes ?? []).filter((/** @type {any} */ c) => c.kind === "silent" && !late.some((l) => l.name === c.by.cluster)); // said already
    return [
      late.length > 0 && h("p", { class: "note warn", role: "note", key: "late" }, icon("alert"),
        `What is newest may be missing: ${late.slice(0, few).map((c) => `the mirror of ${clear(c.name)} is ${duration(c.lag * second)} behind${c.every ? `, usually each ${duration(c.every * second)}` : ""} (complete until ${short(Date.parse(c.completeUntil))})`).join(", ")}${rest(late.length)}.`),
      silent.length > 0 && h("p", { class: "note warn", role: "note", key: "silent" }, icon("alert"), h("span", null, "Nothing comes any more of ",
        silent.slice(0, few).map((/** @type {any} */ c, /** @type {number} */ i) => [i > 0 && ", ", h("strong", null, clear(silenced(c))), " since ", h("time", { title: absolute(Date.parse(c.last)) }, `${short(Date.parse(c.last))}, ${relative(Date.parse(c.last))}`)]), rest(silent.length), ".")),
    ];
  }
}

/** @param {number} n */
const rest = (n) => (n > few ? `, and ${n - few} more` : "");
