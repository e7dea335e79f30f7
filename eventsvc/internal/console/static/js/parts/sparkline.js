// Sparklines: a row of small bars, for a cell of a table.

import { h } from "../lib/dom.js";

/**
 * @param {number[]} values one for each bucket of the range @param {string} label what they say, in words
 * @param {string} [kind] class of the bars
 */
export function sparkline(values, label, kind = "normal") {
  const most = Math.max(1, ...values);
  const wide = 120 / Math.max(1, values.length);
  return h("svg", { class: "sparkline " + kind, viewBox: "0 0 120 20", width: 120, height: 20, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    h("line", { class: "base", x1: 0, x2: 120, y1: 19.5, y2: 19.5 }),
    values.map((v, i) => v > 0 && h("rect", { key: i, x: (i * wide).toFixed(2), width: Math.max(1, wide - 0.5).toFixed(2), y: (19 - Math.max(2, (v / most) * 18)).toFixed(2), height: Math.max(2, (v / most) * 18).toFixed(2) })));
}
