// Two courses of one length in one plot: bars for the one, a line for the other.

import { roundUp } from "../lib/axis.js";
import { h } from "../lib/dom.js";
import { human } from "../lib/event.js";

const wide = 600;
const high = 90;

/**
 * @param {number[]} now bars @param {number[]} then the line, as long as the bars
 * @param {[string, string]} names of both, for the legend
 */
export function overlay(now, then, names) {
  const most = roundUp(Math.max(1, ...now, ...then));
  const step = wide / Math.max(1, now.length);
  const y = (/** @type {number} */ n) => (high - (n / most) * high).toFixed(1);
  const line = then.slice(0, now.length).map((n, i) => `${((i + 0.5) * step).toFixed(1)},${y(n)}`).join(" ");
  return h("figure", { class: "overlay" },
    h("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `${names[0]}: at most ${human(Math.max(0, ...now))} at once. ${names[1]}: at most ${human(Math.max(0, ...then))}.`, preserveAspectRatio: "none" },
      now.map((n, i) => n > 0 && h("rect", { key: i, x: (i * step).toFixed(1), width: Math.max(1, step - 1).toFixed(1), y: y(n), height: (high - Number(y(n))).toFixed(1) })),
      h("polyline", { points: line })),
    h("figcaption", null, h("span", { class: "key-now" }, names[0]), h("span", { class: "key-then" }, names[1]), h("span", { class: "hint" }, `at most ${human(most)} in a bar`)));
}
