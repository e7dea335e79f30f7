// The columns of a table of events.

import { h } from "../lib/dom.js";
import { human, rate, typeClass } from "../lib/event.js";
import { prefer, prefs } from "../lib/prefs.js";
import { absolute, duration, relative } from "../lib/time.js";
import { icon } from "./icons.js";
import { Menu } from "./menu.js";

/** @typedef {import("../lib/event.js").Row} Row */
/** @typedef {{title: string, width: string, cell: (r: Row) => import("../lib/dom.js").Child}} Column */

/**
 * A mark for a type: shape and word, so that colour is not all.
 * @param {string} type
 */
export const typeMark = (type) => h("span", { class: "type " + typeClass(type) }, type || "–");

/**
 * The object of an event, as kind/name.
 * @param {{kind: string, name: string}} o
 */
export const objectName = (o) => (o.kind || o.name ? `${o.kind || "?"}/${o.name || "?"}` : "–");

/**
 * How often: once, or a series with its length and rate.
 * @param {Row} r
 */
export function series(r) {
  if (r.count < 2) return "";
  const over = r.time - r.first;
  return h("span", { class: "series", title: `${r.count.toLocaleString("en")} from ${absolute(r.first)} to ${absolute(r.time)}${over > 0 ? `, ${rate(r.count, r.first, r.time)}` : ""}` },
    `${human(r.count)}×`, over > 0 && h("span", { class: "over" }, ` over ${duration(over)}`));
}

/** @type {Record<string, Column>} */
export const columns = {
  time: { title: "Time", width: "11.5rem", cell: (r) => h("time", { title: relative(r.time) }, absolute(r.time)) },
  ago: { title: "Ago", width: "6.5rem", cell: (r) => h("time", { title: absolute(r.time) }, relative(r.time)) },
  type: { title: "Type", width: "6rem", cell: (r) => typeMark(r.type) },
  reason: { title: "Reason", width: "11rem", cell: (r) => r.reason },
  object: { title: "Object", width: "minmax(10rem, 1fr)", cell: (r) => [h("span", { class: "object-kind" }, r.kind && r.kind + "/"), r.name || "–"] },
  namespace: { title: "Namespace", width: "9rem", cell: (r) => r.namespace },
  note: { title: "Note", width: "minmax(12rem, 2fr)", cell: (r) => r.note },
  count: { title: "Count", width: "9rem", cell: series },
  first: { title: "First", width: "11.5rem", cell: (r) => absolute(r.first) },
  reporter: { title: "Reporter", width: "10rem", cell: (r) => r.reporter },
  host: { title: "Host", width: "9rem", cell: (r) => r.host },
  action: { title: "Action", width: "8rem", cell: (r) => r.action },
  cluster: { title: "Cluster", width: "7rem", cell: (r) => r.cluster },
  node: { title: "Node", width: "9rem", cell: (r) => r.node },
  owner: { title: "Owner", width: "11rem", cell: (r) => r.owner },
};

/** The columns that are shown, in their order. */
export const shown = () => Object.keys(columns).filter((c) => prefs.columns.includes(c));

/**
 * The menu in which columns are chosen.
 * @param {import("../app.js").App} app
 */
export function columnMenu(app) {
  const menu = new Menu(app.redraw);
  return { stop: () => menu.stop(), draw: () => h("div", { class: "columns" }, menu.draw({ title: "Columns", "aria-label": "Columns", class: "icon" }, icon("columns"), "Columns", () =>
    h("fieldset", null, h("legend", null, "Columns"), Object.entries(columns).map(([name, c]) =>
      h("label", { class: "check", key: name }, h("input", {
        type: "checkbox", checked: prefs.columns.includes(name), disabled: prefs.columns.length === 1 && prefs.columns[0] === name,
        onchange: () => {
          prefer("columns", prefs.columns.includes(name) ? prefs.columns.filter((x) => x !== name) : [...prefs.columns, name]);
          app.redraw();
        },
      }), c.title))))) };
}
