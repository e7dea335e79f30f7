// The head of a table. The title of a column sorts by it or hides it, and its edge changes the width.

import { h } from "../lib/dom.js";
import { prefer, prefs } from "../lib/prefs.js";
import { columns } from "./columns.js";

/**
 * How rows are sorted: by a column, in reverse with "-" before its name. "" keeps the order of the server.
 * @typedef {{by: string, can: (name: string) => boolean, set: (by: string) => void}} Sorting
 */

const least = 48; // pixels: the smallest width of a column
const step = 16;

/**
 * The widths of columns in pixels: that of the person, or what the column has, but not more than its share. The note gets what is left.
 * @param {string[]} names @param {import("../lib/event.js").Row[]} rows @param {import("./text.js").Ruler} ruler @param {number} room
 * @param {boolean} [stacked] whether the object stands below the reason
 */
export function widthsOf(names, rows, ruler, room, stacked = false) {
  /** @type {Record<string, number>} */
  const widths = {};
  for (const name of names) {
    const { title, text, most } = columns[name];
    let longest = "";
    for (const r of rows) if (text(r).length > longest.length) longest = text(r);
    const figures = ["time", "ago", "first", "count"].includes(name); // which are of one width
    const wide = Math.max(ruler.width(figures ? longest.replace(/\d/g, "0") : longest) * 1.04 + (name === "reason" ? 16 : 2), ruler.width(title) * 0.95 + 14);
    widths[name] = prefs.widths[name] ?? Math.ceil(Math.max(least, stacked && name === "reason" ? room * 0.3 : Math.min(wide, most * room)));
  }
  const left = room - Object.values(widths).reduce((sum, w) => sum + w + gap, -gap);
  const last = names.includes("note") ? "note" : names[names.length - 1];
  if (last && !prefs.widths[last]) widths[last] = Math.max(200, Math.floor(widths[last] + left));
  return widths;
}

/** The pixels between columns. */
export const gap = 14;

/** @param {string} name @param {number} width @param {boolean} [keep] */
function widen(name, width, keep = true) {
  const widths = { ...prefs.widths, [name]: Math.max(least, Math.round(width)) };
  if (keep) prefer("widths", widths);
  else prefs.widths = widths;
}

/**
 * @param {import("../app.js").App} app @param {string[]} names of the columns @param {Sorting} [sorting]
 */
export function tableHead(app, names, sorting) {
  return names.map((name) => {
    const way = sorting?.by === name ? "ascending" : sorting?.by === "-" + name ? "descending" : "none";
    const can = sorting?.can(name) ?? false;
    const sort = () => can && sorting?.set(sorting.by === "-" + name ? name : "-" + name);
    return h("span", { role: "columnheader", key: name, class: "c-" + name, "aria-sort": can ? way : undefined },
      h("button", {
        type: "button", class: "plain title", "aria-disabled": !can, onclick: sort,
        title: `${can ? "Sort by this" : sorting ? "Can be sorted once all rows are loaded: narrow the search or the range" : "The newest stand first"}. ← and → change the width, Delete hides it.`,
        onkeydown: (/** @type {KeyboardEvent} */ e) => {
          const cell = /** @type {HTMLElement} */ (e.currentTarget).parentElement;
          if (e.key === "Delete" && names.length > 1) prefer("columns", names.filter((n) => n !== name));
          else if ((e.key === "ArrowLeft" || e.key === "ArrowRight") && cell) widen(name, cell.offsetWidth + (e.key === "ArrowLeft" ? -step : step));
          else return;
          e.preventDefault();
          e.stopPropagation();
          app.redraw();
        },
      }, columns[name].title, way !== "none" && h("span", { class: "way", "aria-hidden": "true" }, way === "ascending" ? "▲" : "▼")),
      h("span", {
        class: "edge", title: "Drag to change the width; double-click for the default", "aria-hidden": "true",
        ondblclick: () => { const { [name]: _, ...rest } = prefs.widths; prefer("widths", rest); app.redraw(); },
        onpointerdown: (/** @type {PointerEvent} */ e) => drag(app, name, e),
      }));
  });
}

/**
 * Follows the pointer with the edge of a column.
 * @param {import("../app.js").App} app @param {string} name @param {PointerEvent} e
 */
function drag(app, name, e) {
  const edge = /** @type {HTMLElement} */ (e.currentTarget);
  const begin = edge.parentElement?.offsetWidth ?? 0;
  if (e.button !== 0) return;
  e.preventDefault();
  edge.setPointerCapture(e.pointerId);
  const width = (/** @type {PointerEvent} */ m) => begin + m.clientX - e.clientX;
  edge.onpointermove = (m) => { widen(name, width(m), false); app.redraw(); };
  edge.onpointerup = edge.onpointercancel = (m) => {
    edge.onpointermove = edge.onpointerup = edge.onpointercancel = null;
    if (Math.abs(m.clientX - e.clientX) > 1) widen(name, width(m));
    app.redraw();
  };
}

/**
 * Rows in the order of a column. The rows themselves stay as they are.
 * @param {import("../lib/event.js").Row[]} rows @param {string} by
 */
export function sorted(rows, by) {
  const name = by.replace("-", "");
  if (!Object.hasOwn(columns, name)) return rows;
  const column = columns[name];
  const turn = by.startsWith("-") ? -1 : 1;
  const compare = (/** @type {string|number} */ a, /** @type {string|number} */ b) => (typeof a === "number" ? a - Number(b) : a.localeCompare(String(b), "en", { numeric: true }));
  return [...rows].sort((a, b) => turn * compare(column.by(a), column.by(b)));
}
