// Lanes: what happened to several objects, one below the other over the same time.

import { timeTicks } from "../lib/axis.js";
import { h } from "../lib/dom.js";
import { clear, counted, typeClass } from "../lib/event.js";
import { absolute, relative } from "../lib/time.js";

/**
 * One observation.
 * @typedef {{id: string, time: number, first: number, type: string, reason: string, note: string, count: number, deleted: boolean}} Mark
 * @typedef {{title: string, sub: string, href: string, marks: Mark[]}} Lane
 */

/**
 * @param {import("../app.js").App} app @param {Lane[]} lanes @param {number} from @param {number} to
 * @param {(from: number, to: number) => void} zoom
 */
export function laneChart(app, lanes, from, to, zoom) {
  const place = (/** @type {number} */ at) => `${Math.max(0, Math.min(100, ((at - from) / (to - from)) * 100)).toFixed(3)}%`;
  return h("div", { class: "lanes", role: "group", "aria-label": `Life from ${absolute(from)} to ${absolute(to)}` },
    lanes.map((lane) => h("div", { class: "lane", key: lane.title + lane.sub, role: "group", "aria-label": `${lane.title}, ${counted(lane.marks.length, "observation")}` },
      h("div", { class: "lane-name" }, lane.href ? h("a", { href: lane.href }, lane.title) : h("strong", null, lane.title), h("span", { class: "hint" }, lane.sub)),
      h("div", { class: "lane-track" },
        lane.marks.filter((m) => m.time - m.first > (to - from) / 200 && m.time >= from && m.first <= to).map((m, i) =>
          h("span", { key: "s" + i, class: "span " + typeClass(m.type), css: { left: place(m.first), width: `calc(${place(m.time)} - ${place(m.first)})` } })),
        clusters(lane.marks, from, to).map((c) => mark(app, c, place, zoom))))),
    h("div", { class: "lane axis", key: "axis", "aria-hidden": "true" }, h("div", { class: "lane-name" }), h("div", { class: "lane-track" },
      timeTicks(from, to, innerWidth > 736 ? 8 : 4).map((t) => h("span", { key: t.at, class: "tick", css: { left: place(t.at) } }, t.label)))));
}

/**
 * Marks that would cover each other, put together.
 * @param {Mark[]} marks @param {number} from @param {number} to @returns {Mark[][]}
 */
function clusters(marks, from, to) {
  const track = innerWidth > 736 ? innerWidth - 330 : innerWidth - 90;
  const near = ((to - from) * 29) / Math.max(200, track);
  /** @type {Mark[][]} */
  const out = [];
  for (const m of marks.filter((x) => x.time >= from && x.time <= to).sort((a, b) => a.time - b.time)) {
    const last = out[out.length - 1];
    if (last && m.time - last[0].time < near) last.push(m);
    else out.push([m]);
  }
  return out;
}

/** @param {import("../app.js").App} app @param {Mark[]} c @param {(at: number) => string} place @param {(from: number, to: number) => void} zoom */
function mark(app, c, place, zoom) {
  const [m] = c;
  const warnings = c.filter((x) => x.type === "Warning").length;
  const reasons = [...new Set(c.map((x) => (x.deleted ? `${x.reason} (event deleted)` : x.reason)))];
  const text = c.length === 1 ? `${reasons[0]}${m.count > 1 ? `, ${m.count} times` : ""}, ${absolute(m.time)}, ${relative(m.time)}: ${clear(m.note)}`
    : `${counted(c.length, "observation")}, ${counted(warnings, "warning")}, from ${absolute(m.time)}: ${reasons.slice(0, 5).join(", ")}`;
  const same = new Set(c.map((x) => x.id)).size === 1;
  return h("button", {
    type: "button", key: `${m.id} ${m.time} ${c.length}`, title: text, "aria-label": text, css: { left: place(m.time) },
    class: `mark ${warnings ? "warning" : typeClass(m.type)}${c.some((x) => x.id === app.state.event) ? " open" : ""}${m.deleted && c.length === 1 ? " deleted" : ""}${c.some((x) => x.reason.startsWith("Object")) ? " edit" : ""}${c.length > 99 ? " many" : ""}`,
    onclick: () => (same ? app.go({ event: m.id }) : zoom(m.time, c[c.length - 1].time)),
  }, c.length > 1 && h("span", null, c.length > 99 ? "99+" : c.length));
}
