// The columns of a table of events.

import { h } from "../lib/dom.js";
import { clear, human, rate, typeClass } from "../lib/event.js";
import { prefer, prefs } from "../lib/prefs.js";
import { courseOfRow, spoken } from "../lib/state.js";
import { absolute, dense, duration, relative } from "../lib/time.js";
import { icon } from "./icons.js";
import { Menu } from "./menu.js";
import { dimmed, hashed } from "./text.js";

/** @typedef {import("../lib/event.js").Row} Row */
/**
 * A column: what a cell shows, as a text for its width, which is at most a share of the table; by what it is sorted, and the term that finds
 * its value.
 * @typedef {{title: string, most: number, cell: (r: Row) => import("../lib/dom.js").Child, text: (r: Row) => string, by: (r: Row) => string|number, term?: (r: Row) => import("../lib/grammar.js").Term}} Column
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
 * The name of an object: with a hash in letters of one width, the hash dimmed.
 * @param {string} name
 */
export const nameOf = (name) => (hashed(name) ? h("span", { class: "mono" }, dimmed(name)) : clear(name) || "–");

/**
 * How often: once, or a series with its length and rate.
 * @param {Row} r @param {boolean} [terse]
 */
export function series(r, terse = false) {
  if (r.count < 2) return "";
  const over = r.time - r.first;
  const course = courseOfRow(r, "now");
  return h("span", { class: "series " + course.state, title: `${r.count.toLocaleString("en")} from ${absolute(r.first)} to ${absolute(r.time)}${over > 0 ? `, ${rate(r.count, r.first, r.time)}` : ""}: ${spoken(course)}` },
    `${human(r.count)}×`, over > 0 && !terse && h("span", { class: "over" }, ` over ${duration(over)}`));
}

/**
 * A column whose value is one of a field of the search.
 * @param {string} field @param {string} title @param {number} most @param {(r: Row) => string} value @param {(r: Row) => import("../lib/dom.js").Child} [cell] @returns {Column}
 */
const valued = (field, title, most, value, cell = (r) => clear(value(r))) => ({ title, most, cell, text: value, by: value, term: (r) => ({ field, value: value(r), not: false }) });

/**
 * A column of instants.
 * @param {string} title @param {(r: Row) => number} at @param {(at: number) => string} written @param {(at: number) => string} other way to write it @returns {Column}
 */
const timed = (title, at, written, other) => ({ title, most: 1, cell: (r) => h("time", { title: other(at(r)) }, written(at(r))), text: (r) => written(at(r)), by: at });

/** @param {number} at */
const both = (at) => `${absolute(at)}, ${relative(at)}`;

/** @type {Record<string, Column>} */
export const columns = {
  time: timed("Time", (r) => r.time, dense, both),
  ago: timed("Ago", (r) => r.time, relative, absolute),
  type: valued("type", "Type", 0.1, (r) => r.type),
  reason: valued("reason", "Reason", 0.17, (r) => r.reason, (r) => [h("span", { class: "type " + typeClass(r.type), title: r.type }, h("span", { class: "unseen" }, `${r.type || "–"} `)), clear(r.reason)]),
  note: { title: "Note", most: 1, cell: (r) => dimmed(r.note), text: (r) => r.note, by: (r) => r.note },
  object: { ...valued("name", "Object", 0.25, (r) => r.name, (r) => [h("span", { class: "object-kind" }, r.kind && r.kind + "/"), nameOf(r.name)]), text: (r) => `${r.kind}/${r.name}`, by: (r) => `${r.kind}/${r.name}` },
  namespace: valued("namespace", "Namespace", 0.12, (r) => r.namespace),
  count: { title: "Count", most: 0.12, cell: (r) => series(r, true), text: (r) => (r.count > 1 ? human(r.count) + "×" : ""), by: (r) => r.count },
  first: timed("First", (r) => r.first, dense, both),
  kind: valued("kind", "Kind", 0.12, (r) => r.kind),
  reporter: valued("reporter", "Reporter", 0.14, (r) => r.reporter),
  host: { title: "Host", most: 0.14, cell: (r) => clear(r.host), text: (r) => r.host, by: (r) => r.host },
  action: { title: "Action", most: 0.12, cell: (r) => clear(r.action), text: (r) => r.action, by: (r) => r.action },
  cluster: valued("cluster", "Cluster", 0.12, (r) => r.cluster),
  node: valued("node", "Node", 0.14, (r) => r.node),
  owner: valued("owner", "Owner", 0.18, (r) => r.owner, (r) => nameOf(r.owner)),
};

/**
 * Columns that have the same in all rows: what they say is said once above the rows.
 * @param {Row[]} rows @param {string[]} names of columns @returns {string[]}
 */
export const alike = (rows, names) => (rows.length < 3 || names.length < 3 ? [] : names.filter((n) => columns[n].term && rows.every((r) => columns[n].by(r) === columns[n].by(rows[0]) && (n !== "reason" || r.type === rows[0].type))));

/** The columns that are shown, in their order. */
export const shown = () => Object.keys(columns).filter((c) => prefs.columns.includes(c));

/**
 * The menu in which columns are chosen.
 * @param {import("../app.js").App} app
 */
export function columnMenu(app) {
  const menu = new Menu(app.redraw);
  return { stop: () => menu.stop(), draw: () => h("div", { class: "columns" }, menu.draw({ title: "Columns", "aria-label": "Columns", class: "icon" }, icon("columns"), "Columns", () =>
    [h("fieldset", null, h("legend", null, "Lines of a note"), h("div", { class: "choice" }, /** @type {[number, string][]} */ ([[1, "One"], [3, "Three"], [99, "All"]]).map(([n, title]) =>
      h("button", { type: "button", key: n, "aria-pressed": prefs.lines === n, onclick: () => { prefer("lines", n); app.redraw(); } }, title)))),
    h("fieldset", null, h("legend", null, "Columns"), Object.entries(columns).map(([name, c]) =>
      h("label", { class: "check", key: name }, h("input", {
        type: "checkbox", checked: prefs.columns.includes(name), disabled: prefs.columns.length === 1 && prefs.columns[0] === name,
        onchange: () => {
          prefer("columns", prefs.columns.includes(name) ? prefs.columns.filter((x) => x !== name) : [...prefs.columns, name]);
          app.redraw();
        },
      }), c.title)))])) };
}
