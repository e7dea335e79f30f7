// The life of one object in lanes: its own events, those of what owns it, and of its node;
// also after it and its events were deleted.

import { h } from "../lib/dom.js";
import { countOf, firstObserved, row } from "../lib/event.js";
import { Resource } from "../lib/load.js";
import { below, isBelow, nodeOf, owners } from "../lib/owners.js";
import { absolute, duration, minute, relative, rfc3339 } from "../lib/time.js";
import { subject } from "../lib/takeaway.js";
import { objectQuery } from "../parts/drawer.js";
import { icon } from "../parts/icons.js";
import { laneChart } from "../parts/lanes.js";
import { answered } from "../parts/message.js";
import { lifeOf, Table } from "../parts/table.js";
import { verdictOfObject } from "../parts/verdict.js";

/** @typedef {import("../parts/lanes.js").Lane} Lane @typedef {import("../parts/lanes.js").Mark} Mark */
/** @typedef {{title: string, sub: string, href: string, items: any[]}} Other */
/** @typedef {{own: any, around: Other[], owners: number, below: import("../lib/event.js").Row[], more: {count: number, q: string}}} Life */

const most = 1000; // versions of one object that are loaded
const lanesBelow = 12; // of what an object has made

export class ObjectView {
  /**
   * The part of its life that is looked at; null is all.
   * @type {[number, number]|null}
   */
  #zoom = null;
  /** Whether the rows are those of all lanes; without those below the object, of which there may be many. */
  #whole = false;

  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Resource<Life>} */
    this.life = new Resource(app.redraw);
    this.table = new Table(app, "What happened to it");
    this.#object = "";
  }

  #object;

  draw() {
    const { app } = this;
    const { kind, name, ns, uid } = app.state;
    const object = JSON.stringify([kind, name, ns, uid]);
    if (object !== this.#object) {
      this.#object = object;
      this.#zoom = null;
      this.#whole = false;
      this.life.data = undefined; // the life of one must not stand below the name of another
    }
    this.life.want(`${app.turn} ${object} ${app.state.revision}`, (signal) => this.#load(signal));
    return [
      h("div", { class: "object-head" }, h("h1", null, h("span", { class: "object-kind" }, kind && kind + "/"), name || uid), ns && h("span", { class: "hint" }, `in ${ns}`),
        h("a", { class: "button", href: app.href({ view: "changes", event: "", at: "now", window: "1h" }) }, "What changed around it")),
      answered(app, this.life, "its life", (life) => this.#show(life)),
    ];
  }

  /** @param {AbortSignal} signal @returns {Promise<Life>} */
  async #load(signal) {
    const { app } = this;
    const { state } = app;
    const revision = state.revision;
    const own = await app.query("object", { ...subject(state), order: "newest", limit: String(most), revision }, signal);
    const last = own.items[0]?.event;
    const kind = state.kind || last?.regarding?.kind || "";
    const name = state.name || last?.regarding?.name || "";
    const ns = state.ns || last?.regarding?.namespace || last?.metadata?.namespace || "";
    const related = owners(kind, name, ns).map((o) => ({ title: `${o.kind}/${o.name}`, sub: "by its name an owner", ...o }));
    const node = kind === "Node" ? "" : own.items.map((/** @type {any} */ i) => nodeOf(i.event)).find(Boolean);
    if (node) related.push({ title: `Node/${node}`, sub: "its node", kind: "Node", name: node, ns: "" });
    const around = await Promise.all(related.map(async (o) => {
      const answer = await app.api.query("object", { kind: o.kind, name: o.name, namespace: o.ns || undefined, order: "newest", limit: "500", revision: own.revision }, signal).catch((err) => {
        if (signal.aborted) throw err;
        return { items: [] }; // an object that may not be seen has no lane
      });
      return { title: o.title, sub: o.sub, href: app.href(lifeOf({ kind: o.kind, name: o.name, namespace: o.ns, uid: "" })), items: answer.items };
    }));
    const made = await this.#below(kind, name, ns, own, signal);
    const above = around.filter((a) => a.items.length);
    return { own, around: [...above, ...made.lanes], owners: above.length, below: made.rows, more: made.more };
  }

  /**
   * What the object has made or holds, those with most warnings first, also what is gone.
   * @param {string} kind @param {string} name @param {string} ns @param {any} own @param {AbortSignal} signal
   */
  async #below(kind, name, ns, own, signal) {
    const { app } = this;
    const q = below(kind, name, ns);
    /** @type {Map<string, {title: string, href: string, items: any[], warnings: number}>} */
    const lanes = new Map();
    /** @type {import("../lib/event.js").Row[]} */
    const rows = [];
    if (q) {
      const answer = await app.api.query("events", { search: q, from: own.historyFrom ?? "-30d", limit: "500", revision: own.revision }, signal).catch((err) => {
        if (signal.aborted) throw err;
        return { items: [] };
      });
      for (const event of answer.items) {
        const r = row(event);
        if (!isBelow(r, kind, name)) continue;
        rows.push(r);
        const id = `${r.kind}/${r.name}`;
        const lane = lanes.get(id + r.ns) ?? { title: id, href: app.href(lifeOf({ ...r, namespace: r.ns, uid: "" })), items: [], warnings: 0 };
        lane.items.push({ time: new Date(r.time).toISOString(), event });
        if (r.type === "Warning") lane.warnings += r.count;
        lanes.set(id + r.ns, lane);
      }
    }
    const sorted = [...lanes.values()].sort((a, b) => b.warnings - a.warnings);
    const sub = kind === "Node" ? "on it" : kind === "Namespace" ? "in it" : "below it";
    return { rows, lanes: sorted.slice(0, lanesBelow).map((l) => ({ ...l, sub })), more: { count: Math.max(0, sorted.length - lanesBelow), q } };
  }

  /** @param {Life} life */
  #show(life) {
    const { app } = this;
    const own = life.own.items;
    if (!own.length && !life.around.length) {
      return h("div", { class: "message", "data-kind": "empty" }, h("h2", null, "No events about it"),
        h("p", { class: "why" }, `History${life.own.historyFrom ? `, which goes back to ${absolute(Date.parse(life.own.historyFrom))},` : ""} has none about ${app.state.kind}/${app.state.name}.`),
        h("p", null, "Look whether kind, name and namespace are right, and whether you may list events there."));
    }
    /** @type {Lane[]} */
    const lanes = [{ title: own[0]?.event.regarding?.kind ? `${own[0].event.regarding.kind}/${own[0].event.regarding.name}` : app.state.name, sub: "itself", href: "", marks: own.map(markOf) },
      ...life.around.map((a) => ({ title: a.title, sub: a.sub, href: a.href, marks: a.items.map(markOf) }))];
    const times = lanes[0].marks.length && !life.below.length ? lanes[0].marks : lanes.flatMap((l) => l.marks);
    const first = Math.min(...times.map((m) => Math.min(m.time, m.first || m.time)));
    const end = Math.max(...times.map((m) => m.time));
    // What led to it happened shortly before: the rollout that made a pod.
    const before = first - Math.max(15 * minute, (end - first) / 4);
    const begin = Math.min(first, ...lanes.flatMap((l) => l.marks).map((m) => m.time).filter((at) => at >= before));
    const pad = Math.max(minute, (end - begin) * 0.04);
    const [from, to] = this.#zoom ?? [begin - pad, end + pad];
    const narrower = own.length > 0 && life.owners < life.around.length;
    const inside = (narrower && !this.#whole ? lanes.slice(0, life.owners + 1) : lanes).flatMap((l, i) => (i === 0 ? own : life.around[i - 1].items)).filter((i) => Date.parse(i.time) >= from && Date.parse(i.time) <= to);
    const rows = inside.map((i) => ({ ...row(i.event), time: Date.parse(i.time), reason: i.deleted ? `${i.event.reason} (event deleted)` : i.event.reason })).sort((a, b) => b.time - a.time);
    return [
      verdictOfObject(life.own.series ?? [], life.below),
      h("p", { class: "summary" }, `First seen ${relative(first)}, last ${relative(end)}`, end > first && `, over ${duration(end - first)}`, `. ${life.own.continue ? `The newest ${most} observations are shown.` : ""}`,
        this.#zoom && h("button", { type: "button", onclick: () => this.#look(null) }, icon("out"), "All of it"),
        h("a", { href: app.href({ view: "events", q: objectQuery({ ...app.state, namespace: app.state.ns }), from: rfc3339(begin - minute), to: "now", event: "" }) }, "As a list"),
        narrower && h("span", { class: "choice", role: "group", "aria-label": "Rows" }, [false, true].map((whole) =>
          h("button", { type: "button", key: String(whole), "aria-pressed": this.#whole === whole, onclick: () => { this.#whole = whole; this.#look(this.#zoom); } }, whole ? "All lanes" : "Its own")))),
      life.more.count > 0 && h("p", { class: "hint" }, `The ${lanesBelow} objects with most warnings are shown. `, h("a", { href: app.href({ view: "groups", by: "object", q: life.more.q, from: rfc3339(begin - minute), to: "now", event: "", order: "" }) }, `${life.more.count} more`)),
      laneChart(app, lanes, from, to, (a, b) => this.#look([a - Math.max(1000, (b - a) * 0.1), b + Math.max(1000, (b - a) * 0.1)])),
      this.table.draw(rows, rows.length),
    ];
  }

  /** @param {[number, number]|null} zoom */
  #look(zoom) {
    this.#zoom = zoom;
    this.table.scrollTo(0);
    this.app.redraw();
  }

  /** @param {string} key */
  key(key) {
    return key !== "o" && this.table.key(key);
  }

  leave() {
    this.life.stop();
    this.table.stop();
  }
}

/** @param {any} i a version as /query/v1/object has it @returns {Mark} */
function markOf(i) {
  const e = i.event;
  const time = Date.parse(i.time);
  return { id: `${e.metadata.namespace}/${e.metadata.name}`, time, first: countOf(e) > 1 ? firstObserved(e) : time, type: e.type, reason: e.reason, note: e.note ?? "", count: countOf(e), deleted: Boolean(i.deleted) };
}
