// The drawer: one event in full, and what may be asked from there.

import { Failure } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { clear, countOf, human, rate, row } from "../lib/event.js";
import { writeAll } from "../lib/grammar.js";
import { courseOfRow, spoken } from "../lib/state.js";
import { Resource } from "../lib/load.js";
import { absolute, duration, relative, rfc3339 } from "../lib/time.js";
import { subject } from "../lib/takeaway.js";
import { document as yamlOf } from "../lib/yaml.js";
import { choose } from "./choose.js";
import { objectName, typeMark } from "./columns.js";
import { icon } from "./icons.js";
import { copyButton, line } from "./links.js";
import { ofEvent } from "./commands.js";
import { loading } from "./message.js";
import { lifeOf } from "./table.js";
import { dimmed } from "./text.js";

/**
 * An event that was found, and what is to be said if it is no longer there.
 * @typedef {{id: string, event: any, deleted: string}} Found
 */

export class Drawer {
  /** @type {"details"|"yaml"|"json"} */
  tab = "details";
  managed = false;
  /**
   * What had the focus before it was opened.
   * @type {HTMLElement|null}
   */
  #before = null;

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Resource<Found>} */
    this.event = new Resource(app.redraw);
  }

  draw() {
    const { app } = this;
    const id = app.state.event;
    if (!id) {
      this.event.stop();
      this.event.data = undefined;
      const before = this.#before;
      this.#before = null;
      // Who has closed it goes on where they were, once it is gone.
      if (before) queueMicrotask(() => before.isConnected && document.activeElement === document.body && before.focus({ preventScroll: true }));
      return null;
    }
    const [namespace, name] = id.split("/", 2);
    this.event.want(`${app.turn} ${id}`, (signal) => find(app, namespace, name ?? "", signal));
    const found = this.event.data;
    const current = found?.id === id ? found.event : null;
    const title = current?.reason || "Event";
    return h("aside", {
      class: "drawer", key: "drawer", "aria-label": `Event ${name}`, tabindex: "-1",
      ref: (/** @type {HTMLElement} */ el) => { this.#before = /** @type {HTMLElement} */ (document.activeElement); el.focus({ preventScroll: true }); },
    },
      h("header", null, current && typeMark(current.type), h("h2", null, clear(title)), h("button", { type: "button", class: "plain icon", title: "Close (Esc)", "aria-label": "Close", onclick: () => app.go({ event: "" }) }, icon("close"))),
      this.event.failure && !this.event.loading ? this.#failed(this.event.failure, name ?? "") : !found || !current ? loading("the event") : this.#body(found));
  }

  /** @param {Failure} f @param {string} name */
  #failed(f, name) {
    const gone = f.kind === "missing";
    return h("div", { class: "message", role: "alert", "data-kind": f.kind }, h("h2", null, gone ? "This event is no longer there" : f.kind === "forbidden" ? "This token may not see this event" : "The event cannot be shown"),
      h("p", { class: "why" }, gone ? `${name} was deleted or has expired, and no version of it is held.` : f.message),
      h("p", null, gone ? "A link to the state in which it was (c) shows it as long as that state is held." : f.kind === "forbidden" ? "Ask who keeps the policy for the right to get events in its namespace." : "Ask again."));
  }

  /** @param {Found} found */
  #body({ event: e, deleted }) {
    const tabs = /** @type {const} */ (["details", "yaml", "json"]);
    const shown = this.managed || !e.metadata?.managedFields ? e : { ...e, metadata: { ...e.metadata, managedFields: undefined } };
    const json = JSON.stringify(shown, null, 2);
    const text = this.tab === "yaml" ? yamlOf(JSON.parse(json)) : json;
    return [
      deleted && h("p", { class: "note warn", role: "note" }, icon("alert"), `${deleted} What you see is the last version that is held.`),
      h("div", { class: "choice", role: "group", "aria-label": "Form" }, tabs.map((t) => h("button", { type: "button", key: t, "aria-pressed": this.tab === t, onclick: () => { this.tab = t; this.app.redraw(); } }, t === "details" ? "Details" : t.toUpperCase()))),
      this.tab === "details" ? this.#details(e) : h("div", { class: "source" },
        h("p", { class: "actions" }, copyButton(this.app, text, this.tab.toUpperCase()), e.metadata?.managedFields && h("label", { class: "check" }, h("input", { type: "checkbox", checked: this.managed, onchange: () => { this.managed = !this.managed; this.app.redraw(); } }), "Managed fields")),
        h("pre", { tabindex: "0", "aria-label": this.tab.toUpperCase() }, clear(text))),
    ];
  }

  /**
   * The buttons that add a value to the search, or leave it out.
   * @param {string} title @param {string} value
   */
  #choose(title, value) {
    const field = title.startsWith("Label ") ? `label.${title.slice(6)}` : searchable[title];
    if (!field || !value) return null;
    const term = { field, value: title === "Object" ? value.slice(value.indexOf("/") + 1) : title.startsWith("Label ") ? value.slice(value.indexOf("=") + 1) : value, not: false };
    return choose(this.app, [term], `${title} ${term.value}`);
  }

  /** @param {any} e */
  #details(e) {
    const { app } = this;
    const r = row(e);
    const count = countOf(e);
    const created = Date.parse(e.metadata?.creationTimestamp ?? "");
    /** @type {[string, import("../lib/dom.js").Child, string][]} */
    const list = [
      ["Type", r.type, r.type], ["Reason", r.reason, r.reason], ["Kind", r.kind, r.kind], ["Object", objectName(r), objectName(r)], ["Namespace", r.namespace, r.namespace], ["Observed", moment(r.time), rfc3339(r.time || 0)],
      ...(count > 1 ? /** @type {[string, import("../lib/dom.js").Child, string][]} */ ([
        ["First", moment(r.first), rfc3339(r.first || 0)], ["Count", `${count.toLocaleString("en")}${rate(count, r.first, r.time) && ` (${rate(count, r.first, r.time)}, over ${duration(r.time - r.first)})`}`, String(count)]]) : []),
      ["State", count > 1 ? spoken(courseOfRow(r, "now")) : "", ""],
      ["Action", r.action, r.action], ["Part", e.regarding?.fieldPath, e.regarding?.fieldPath], ["Related", e.related && objectName({ kind: e.related.kind, name: e.related.name }), e.related?.name],
      ["Reporter", r.reporter, r.reporter], ["Node", r.node, r.node], ["Host", r.host === r.node ? "" : r.host, r.host], ["Cluster", r.cluster, r.cluster], ["Owner", r.owner, r.owner], ["Object’s UID", r.uid, r.uid],
      ["Event", e.metadata?.name, e.metadata?.name], ["Created", moment(created), e.metadata?.creationTimestamp], ["Revision", r.revision, r.revision],
      .../** @type {[string, import("../lib/dom.js").Child, string][]} */ (Object.entries(e.metadata?.labels ?? {}).map(([k, v]) => [`Label ${k}`, String(v), `${k}=${v}`])),
      .../** @type {[string, import("../lib/dom.js").Child, string][]} */ (Object.entries(e.metadata?.annotations ?? {}).map(([k, v]) => [`Annotation ${k}`, String(v), String(v)])),
    ];
    const ask = (/** @type {string} */ text, /** @type {Partial<import("../app.js").State>} */ to) => h("a", { class: "button", href: app.href({ event: "", ...to }) }, text);
    const around = { from: rfc3339(r.time - 300000), to: rfc3339(r.time + 300000), view: "events", q: "", revision: "" };
    return [
      h("p", { class: "full-note" }, e.note ? dimmed(e.note) : h("em", null, "It has no note."), e.note && copyButton(app, e.note, "Note")),
      h("nav", { class: "asks", "aria-label": "From here" },
        ask("What changed before this", { view: "changes", q: "", at: rfc3339((count > 1 && r.first ? r.first : r.time) + 1000), window: "15m", ns: r.ns, other: "" }),
        ask("Life of the object", lifeOf({ ...r, namespace: r.ns })),
        ask("Same object", { view: "events", q: objectQuery(r), revision: "" }),
        ask("Same reason", { view: "events", q: queryOf([["reason", r.reason]]), revision: "" }),
        ask("Five minutes around it", around)),
      h("dl", { class: "details" }, list.filter(([, v]) => v !== "" && v !== undefined && v !== null && v !== false).map(([title, value, text]) =>
        h("div", { key: title }, h("dt", null, title), h("dd", null, h("span", null, typeof value === "string" ? clear(value) : value), text && [this.#choose(title, text), copyButton(app, text, title)])))),
      h("details", { class: "elsewhere", open: true }, h("summary", null, "The same event elsewhere"), ofEvent(app, e).map((c) => h("div", { class: "same", key: c.name }, h("h3", null, c.name), line(app, c.text, c.name)))),
      r.count > 1 && h("p", { class: "hint" }, `One event stands for ${human(count)} occurrences: a series.`),
    ];
  }
}

/**
 * The fields of the search by which values are chosen.
 * @type {Record<string, string>}
 */
const searchable = {
  Type: "type", Reason: "reason", Kind: "kind", Object: "name", Namespace: "namespace", Reporter: "reporter", Node: "node", Cluster: "cluster", Owner: "owner", "Object’s UID": "uid", Part: "path", Event: "event",
};

/** @param {number} at */
const moment = (at) => (Number.isNaN(at) ? "" : [absolute(at), h("span", { class: "hint" }, ` ${relative(at)}`)]);

/**
 * The search for fields with values, those without a value left out.
 * @param {[string, string][]} terms
 */
const queryOf = (terms) => writeAll(terms.filter(([, value]) => value).map(([field, value]) => ({ field, value, not: false })));

/** @param {{uid: string, kind: string, name: string, namespace: string}} r */
export const objectQuery = (r) => (r.uid ? queryOf([["uid", r.uid]]) : queryOf([["kind", r.kind], ["name", r.name], ["namespace", r.namespace]]));

/**
 * Finds an event: as it is now; or, if it is gone, as it was in the state of a link or in
 * the life of the object that is followed.
 * @param {import("../app.js").App} app @param {string} namespace @param {string} name @param {AbortSignal} signal
 * @returns {Promise<Found>}
 */
async function find(app, namespace, name, signal) {
  const id = `${namespace}/${name}`;
  try {
    return { id, event: await app.api.get(app.api.events(namespace, name), {}, signal), deleted: "" };
  } catch (err) {
    if (!(err instanceof Failure) || err.kind !== "missing") throw err;
    const { state } = app;
    if (state.revision) {
      const question = { namespace, fieldSelector: `metadata.name=${name}`, from: state.from, to: state.to, revision: state.revision };
      const answer = await app.api.query("events", question, signal);
      if (answer.items.length) return { id, event: answer.items[0], deleted: "It was deleted or has expired since." };
    }
    if (state.view === "object") {
      const answer = await app.api.query("object", { ...subject(state), order: "newest", limit: "1000" }, signal);
      const last = answer.items.find((/** @type {any} */ i) => i.event.metadata.name === name);
      if (last) return { id, event: last.event, deleted: last.deleted ? `It was deleted ${relative(Date.parse(last.time))}.` : "It has expired." };
    }
    throw err;
  }
}
