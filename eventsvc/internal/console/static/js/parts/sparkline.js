// Small plots within lines: a row of bars, and a lane with the life of one thing.

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

/**
 * A lane: when something began and came last within a range.
 * @param {number} first @param {number} last @param {number} from @param {number} to @param {"normal"|"warning"} kind
 */
export function lane(first, last, from, to, kind) {
  const x = (/** @type {number} */ at) => 4 + 52 * Math.max(0, Math.min(1, (at - from) / (to - from)));
  if (!(last >= first && to > from)) return null;
  return h("svg", { class: "small-lane " + kind, viewBox: "0 0 60 10", width: 60, height: 10, "aria-hidden": "true" }, h("path", { class: "base", d: "M0 5h60" }),
    x(last) - x(first) > 1 && h("path", { class: "life", d: `M${x(first).toFixed(1)} 5H${x(last).toFixed(1)}` }),
    kind === "warning" ? h("path", { class: "end", d: `M${x(last).toFixed(1)} 1l4 4-4 4-4-4z` }) : h("circle", { class: "end", cx: x(last).toFixed(1), cy: 5, r: 3.5 }));
}
