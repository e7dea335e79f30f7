// The columns of a table of events.

import { h } from "../lib/dom.js";
import { clear, human, rate, typeClass } from "../lib/event.js";
import { prefer, prefs } from "../lib/prefs.js";
import { absolute, dense, duration, relative } from "../lib/time.js";
import { icon } from "./icons.js";
import { Menu } from "./menu.js";

/** @typedef {import("../lib/event.js").Row} Row */
/**
 * A column: what a cell shows, by what it is sorted, and the term that finds its value.
 * @typedef {{title: string, width: string, cell: (r: Row) => import("../lib/dom.js").Child, by: (r: Row) => string|number, term?: (r: Row) => import("../lib/grammar.js").Term}} Column
 */

/**
 * A mark for a type: shape and word, so that colour is not all.
 * @param {string} type
 */
export const typeMark = (type) => h("span", { class: "type " + typeClass(type) }, clear(type) || "–");

/**
 * The object of an event, as kind/name.
 * @param {{kind: string, name: string}} o
 */
export const objectName = (o) => (o.kind || o.name ? clear(`${o.kind || "?"}/${o.name || "?"}`) : "–");

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

/**
 * A column whose value is one of a field of the search.
 * @param {string} field @param {string} title @param {string} width @param {(r: Row) => string} value @param {(r: Row) => import("../lib/dom.js").Child} [cell] @returns {Column}
 */
const valued = (field, title, width, value, cell = (r) => clear(value(r))) => ({ title, width, cell, by: value, term: (r) => ({ field, value: value(r), not: false }) });

/** @type {Record<string, Column>} */
export const columns = {
  time: { title: "Time", width: "9.3rem", cell: (r) => h("time", { title: `${absolute(r.time)}, ${relative(r.time)}` }, dense(r.time)), by: (r) => r.time },
  ago: { title: "Ago", width: "6.5rem", cell: (r) => h("time", { title: absolute(r.time) }, relative(r.time)), by: (r) => r.time },
  type: valued("type", "Type", "var(--type, 6rem)", (r) => r.type, (r) => typeMark(r.type)),
  reason: valued("reason", "Reason", "var(--reason, minmax(8rem, 10rem))", (r) => r.reason),
  object: {
    ...valued("name", "Object", "var(--object, minmax(9rem, 3fr))", (r) => r.name, (r) => [h("span", { class: "object-kind" }, r.kind && r.kind + "/"), clear(r.name) || "–"]), by: (r) => `${r.kind}/${r.name}`,
  },
  namespace: valued("namespace", "Namespace", "var(--namespace, minmax(6rem, 8rem))", (r) => r.namespace),
  note: { title: "Note", width: "var(--note, minmax(11rem, 4fr))", cell: (r) => clear(r.note), by: (r) => r.note },
  count: { title: "Count", width: "var(--count, minmax(5rem, 9rem))", cell: series, by: (r) => r.count },
  first: { title: "First", width: "9.3rem", cell: (r) => h("time", { title: `${absolute(r.first)}, ${relative(r.first)}` }, dense(r.first)), by: (r) => r.first },
  kind: valued("kind", "Kind", "9rem", (r) => r.kind),
  reporter: valued("reporter", "Reporter", "10rem", (r) => r.reporter),
  host: { title: "Host", width: "9rem", cell: (r) => clear(r.host), by: (r) => r.host },
  action: { title: "Action", width: "8rem", cell: (r) => clear(r.action), by: (r) => r.action },
  cluster: valued("cluster", "Cluster", "7rem", (r) => r.cluster),
  node: valued("node", "Node", "9rem", (r) => r.node),
  owner: valued("owner", "Owner", "11rem", (r) => r.owner),
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
