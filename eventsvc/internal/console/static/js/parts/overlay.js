// Two courses of one length in one plot: bars for the one, a line for the other.

import { roundUp, spread, timeTicks } from "../lib/axis.js";
import { h } from "../lib/dom.js";
import { human } from "../lib/event.js";
import { parseDuration } from "../lib/time.js";

const wide = 600;
const high = 90;

/**
 * @param {any} bars a histogram, whose times stand below @param {any} course a histogram of the same length, drawn as a line
 * @param {[string, string]} names of both, for the legend
 */
export function overlay(bars, course, names) {
  const [now, then] = [bars, course].map((a) => spread(a, (b) => b.count));
  const width = parseDuration(bars.step);
  const from = Math.floor(Date.parse(bars.range.from) / width) * width;
  const length = now.length * width;
  const most = roundUp(Math.max(1, ...now, ...then));
  const step = wide / Math.max(1, now.length);
  const y = (/** @type {number} */ n) => (high - (n / most) * high).toFixed(1);
  const line = then.slice(0, now.length).map((n, i) => `${((i + 0.5) * step).toFixed(1)},${y(n)}`).join(" ");
  return h("figure", { class: "overlay" },
    h("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `${names[0]}: at most ${human(Math.max(0, ...now))} at once. ${names[1]}: at most ${human(Math.max(0, ...then))}.`, preserveAspectRatio: "none" },
      now.map((n, i) => n > 0 && h("rect", { key: i, x: (i * step).toFixed(1), width: Math.max(1, step - 1).toFixed(1), y: y(n), height: (high - Number(y(n))).toFixed(1) })),
      h("polyline", { points: line })),
    h("div", { class: "overlay-axis", "aria-hidden": "true" }, timeTicks(from, from + length, innerWidth > 736 ? 8 : 4).filter((t) => Math.abs(t.at - from - length / 2) < 0.45 * length).map((t) =>
      h("span", { key: t.at, class: "tick", css: { left: `${(((t.at - from) / length) * 100).toFixed(2)}%` } }, t.label))),
    h("figcaption", null, h("span", { class: "key-now" }, names[0]), h("span", { class: "key-then" }, names[1]), h("span", { class: "hint" }, `at most ${human(most)} in a bar`)));
}
