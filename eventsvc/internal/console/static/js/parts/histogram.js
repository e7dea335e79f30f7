// The histogram over the whole range: bars by type, gaps drawn as gaps, and a brush.

import { roundUp, stepFor, timeTicks } from "../lib/axis.js";
import { brushed } from "../lib/address.js";
import { h } from "../lib/dom.js";
import * as grammar from "../lib/grammar.js";
import { clear, counted, human, observed } from "../lib/event.js";
import { Resource } from "../lib/load.js";
import { absolute, duration, parseDuration, parseInstant, short } from "../lib/time.js";
import { icon } from "./icons.js";
import { answered } from "./message.js";

/** The search for changes of objects, and for deployments: a set of replicas that begins. One that grows, from 1 or more, is none. */
const editTerms = ' ((reporter:tidings.example/mirror reason:ObjectCreated,ObjectChanged,ObjectDeleted) OR (kind:Deployment reason:ScalingReplicaSet note:"Scaled up"' +
  `${[..."123456789"].map((n) => ` -note:"from ${n}"`).join("")}))`;

/** So many marks of changes have room beside each other; more are strokes. */
const many = 60;

/** @typedef {{start: number, warning: number, rest: number}} Bar */
/** @typedef {import("../lib/search.js").Found} Answer */

/**
 * What rules of a mirror dropped in the hours of the range.
 * @param {Answer} data
 */
function dropped(data) {
  const all = (data.dropped ?? []).map((/** @type {any} */ d) => `${human(d.count)} by ${d.rule}${d.cluster && ` of ${d.cluster}`}`);
  if (!all.length) return null;
  return h("p", { class: "note", role: "note", key: "dropped" }, icon("alert"),
    `Rules of the mirror dropped changes of events in these hours: ${all.slice(0, 5).join(", ")}${all.length > 5 ? ` and ${all.length - 5} more` : ""}.`);
}

export class Histogram {
  #width = 800;
  /** The bar that is looked at. */
  #at = -1;
  /**
   * Ends of the selection, in instants.
   * @type {[number, number]|null}
   */
  #brush = null;
  #dragging = false;
  #pointer = -1;
  /** @type {ResizeObserver|null} */
  #observer = null;

  /** @param {import("../app.js").App} app @param {import("../lib/search.js").Search} search @param {number} height of the plot in pixels */
  constructor(app, search, height) {
    this.app = app;
    this.search = search;
    this.height = height;
    /**
     * The newest changes of objects in the range, of the same namespaces and clusters, whatever else is searched for.
     * @type {Resource<{items: any[]}>}
     */
    this.edits = new Resource(app.redraw);
  }

  /**
   * Asks, and draws.
   * @param {string} [order] of the events that are asked for with it
   */
  draw(order) {
    const { app } = this;
    const [from, to] = app.range();
    this.search.step = stepFor(to - from, Math.max(30, Math.min(160, Math.floor(this.#width / 7))));
    this.search.want(order);
    const terms = grammar.termsOf(app.state.q);
    if (terms) {
      const search = grammar.writeAll(terms.filter((t) => t.field === "namespace" || t.field === "cluster")) + editTerms;
      this.edits.want(app.key("edits", search), (signal) => app.query("events", { ...app.question(), search, limit: "200" }, signal));
    }
    return h("section", { class: "histogram", "aria-label": "Events over time", css: { "--plot": `${this.height}px` } }, answered(app, this.search.answer, "the histogram", (data) => this.#plot(data)));
  }

  /** @param {Answer} data */
  #plot(data) {
    const from = Date.parse(data.range.from);
    const to = Date.parse(data.range.to);
    const step = parseDuration(data.step);
    const bars = barsOf(data, from, to, step);
    const most = roundUp(Math.max(1, ...bars.map((b) => b.warning + b.rest)));
    const width = this.#width - 44;
    const x = (/** @type {number} */ at) => Math.max(0, Math.min(width, ((at - from) / (to - from)) * width));
    const y = (/** @type {number} */ n) => (n / most) * this.height;
    const chosen = brushed(this.app.state);
    const looked = this.#at >= 0 && this.#at < bars.length ? bars[this.#at] : null;
    const edits = (this.edits.data?.items ?? []).filter((/** @type {any} */ e) => observed(e) >= from && observed(e) < to);
    return [
      dropped(data),
      h("div", { class: "readout" }, h("p", { "aria-hidden": "true" }, this.#readout(data, looked, bars, step, edits.length > 0)),
        chosen && !this.#dragging && h("a", { class: "differs", href: this.app.href({ view: "changes", event: "", ns: "", ...chosen }) }, "What differs in it")),
      h("div", { class: edits.length > many ? "edits dense" : "edits" }, edits.map((e) => this.#edit(e, x))),
      h("div", {
        class: "plot", tabindex: "0", role: "slider", "aria-label": "Histogram. Arrows go from bar to bar, Shift selects, Enter shows only what is selected.",
        "aria-valuemin": 0, "aria-valuemax": bars.length - 1, "aria-valuenow": Math.max(0, this.#at), "aria-valuetext": looked ? say(looked, step) : summary(data),
        ref: (/** @type {HTMLElement} */ e) => this.#measure(e),
        onkeydown: (/** @type {KeyboardEvent} */ e) => this.#key(e, bars, step),
        onblur: () => { this.#at = -1; this.app.redraw(); },
        onpointerdown: (/** @type {PointerEvent} */ e) => this.#down(e, from, to), onpointermove: (/** @type {PointerEvent} */ e) => this.#move(e, from, to, bars, step),
        onpointerup: () => this.#up(bars, step), onpointercancel: () => { this.#dragging = false; this.#brush = null; this.app.redraw(); },
        onpointerleave: () => { if (!this.#dragging) { this.#at = -1; this.app.redraw(); } },
      },
        h("svg", { width: this.#width, height: this.height + 22, "aria-hidden": "true" },
          h("g", { class: "scale" },
            h("text", { x: width + 4, y: 10 }, human(most)), h("line", { x1: 0, x2: width, y1: 0.5, y2: 0.5, class: "rule" }),
            most % 2 === 0 && [h("text", { x: width + 4, y: this.height / 2 + 4 }, human(most / 2)), h("line", { x1: 0, x2: width, y1: this.height / 2, y2: this.height / 2, class: "rule" })]),
          this.#absences(data, x, from, to),
          h("g", null, bars.map((b) => {
            const left = x(b.start);
            const wide = Math.max(1, x(b.start + step) - left - (width / bars.length > 4 ? 1 : 0));
            return h("g", { key: b.start, class: b === looked ? "bar looked" : "bar" },
              b.rest > 0 && h("rect", { class: "normal", x: left, width: wide, y: this.height - y(b.warning + b.rest), height: Math.max(1, y(b.rest)) }),
              b.warning > 0 && h("rect", { class: "warning", x: left, width: wide, y: this.height - Math.max(1.5, y(b.warning)), height: Math.max(1.5, y(b.warning)) }));
          })),
          h("line", { class: "base", x1: 0, x2: width, y1: this.height + 0.5, y2: this.height + 0.5 }),
          this.#brush && h("rect", { class: "brush", x: x(Math.min(...this.#brush)), width: Math.max(1, x(Math.max(...this.#brush)) - x(Math.min(...this.#brush))), y: 0, height: this.height }),
          h("g", { class: "ticks" }, timeTicks(from, to, Math.max(4, Math.floor(width / 90))).map((t) =>
            h("g", { key: t.at }, h("line", { x1: x(t.at), x2: x(t.at), y1: this.height, y2: this.height + 4 }),
              h("text", { x: x(t.at), y: this.height + 17, "text-anchor": x(t.at) < 18 ? "start" : x(t.at) > width - 4 ? "end" : "middle" }, t.label)))))),
    ];
  }

  /**
   * What is missing: times before history begins, and gaps in which a mirror was away.
   * @param {Answer} data @param {(at: number) => number} x @param {number} from @param {number} to
   */
  #absences(data, x, from, to) {
    const history = Date.parse(data.historyFrom ?? "");
    const none = Number.isNaN(history) ? to : Math.min(history, to);
    return [
      none > from && x(none) > 2 && h("g", { class: "before", key: "before" }, h("rect", { x: 0, width: x(none), y: 0, height: this.height }),
        x(none) > 110 && h("text", { x: x(none) - 8, y: 14, "text-anchor": "end" }, "no history")),
      (data.gaps ?? []).map((/** @type {any} */ g, /** @type {number} */ i) => {
        const begin = x(Date.parse(g.from));
        const wide = Math.max(3, x(Date.parse(g.to)) - begin);
        return h("g", { class: "gap", key: "gap " + i }, h("rect", { x: begin, width: wide, y: 0, height: this.height }), wide > 40 && h("text", { x: begin + wide / 2, y: 14, "text-anchor": "middle" }, "gap"));
      }),
    ];
  }

  /**
   * A mark above the bars for a change of an object, which leads to its event. The keyboard reaches the events in their list.
   * @param {any} e @param {(at: number) => number} x
   */
  #edit(e, x) {
    const id = `${e.metadata.namespace}/${e.metadata.name}`;
    const title = clear(`${e.regarding?.kind ?? ""} ${e.regarding?.name ?? ""}, ${absolute(observed(e))}: ${e.note ?? ""}`);
    return h("a", { key: id, href: this.app.href({ event: id }), title, "aria-label": title, tabindex: "-1", css: { left: `${x(observed(e))}px` } });
  }

  /** @param {Answer} data @param {Bar|null} looked @param {Bar[]} bars @param {number} step @param {boolean} edited whether there are marks of changes */
  #readout(data, looked, bars, step, edited) {
    return [h("span", null, h("strong", null, human(data.total)), data.total === 1 ? " occurrence" : " occurrences", data.counting && h("span", { class: "hint", role: "status" }, ` so far: ${this.search.answer.loading ? "counting, " : "counted "}${data.counting.progress}`)),
      h("span", { class: "pointed" }, this.#pointed(data, looked, bars, step)), h("span", { class: "legend" }, h("i", { class: "swatch warning" }), "Warning", h("i", { class: "swatch normal" }), "Normal and others", edited && [h("i", { class: "swatch edit" }), "Changes"])];
  }

  /**
   * What is selected or pointed at, "" if nothing is.
   * @param {Answer} data @param {Bar|null} looked @param {Bar[]} bars @param {number} step
   */
  #pointed(data, looked, bars, step) {
    if (this.#brush) {
      const [a, b] = [Math.min(...this.#brush), Math.max(...this.#brush)];
      const inside = bars.filter((bar) => bar.start + step > a && bar.start < b);
      return `${absolute(a)} – ${absolute(b)} (${duration(b - a)}), about ${counted(inside.reduce((n, bar) => n + bar.warning + bar.rest, 0), "occurrence")}`;
    }
    if (!looked) return "";
    const gap = (data.gaps ?? []).find((/** @type {any} */ g) => Date.parse(g.from) < looked.start + step && Date.parse(g.to) > looked.start);
    return say(looked, step) + (gap ? `. A mirror${gap.cluster ? " of " + gap.cluster : ""} was away from ${short(Date.parse(gap.from))} to ${short(Date.parse(gap.to))}` : "");
  }

  /** @param {HTMLElement} e */
  #measure(e) {
    this.#observer?.disconnect();
    this.#observer = new ResizeObserver(() => {
      const width = Math.floor(e.clientWidth);
      if (width === 0 || width === this.#width) return;
      this.#width = width;
      this.app.redraw(true); // before it is seen
    });
    this.#observer.observe(e);
  }

  /** @param {PointerEvent} e @param {number} from @param {number} to */
  #instant(e, from, to) {
    const box = /** @type {HTMLElement} */ (e.currentTarget).getBoundingClientRect();
    return from + Math.max(0, Math.min(1, (e.clientX - box.left) / (this.#width - 44))) * (to - from);
  }

  /** @param {PointerEvent} e @param {number} from @param {number} to */
  #down(e, from, to) {
    if (e.button !== 0) return;
    const element = /** @type {HTMLElement} */ (e.currentTarget);
    if (e.isTrusted) element.setPointerCapture(e.pointerId);
    const at = this.#instant(e, from, to);
    this.#dragging = true;
    this.#brush = [at, at];
    this.app.redraw();
  }

  /** @param {PointerEvent} e @param {number} from @param {number} to @param {Bar[]} bars @param {number} step */
  #move(e, from, to, bars, step) {
    // A browser repeats the last move when something is drawn below the pointer, which must not take back what keys did.
    if (e.clientX === this.#pointer) return;
    this.#pointer = e.clientX;
    const at = this.#instant(e, from, to);
    this.#at = bars.findIndex((b) => at >= b.start && at < b.start + step);
    if (this.#dragging && this.#brush) this.#brush = [this.#brush[0], at];
    this.app.redraw();
  }

  /** @param {Bar[]} bars @param {number} step */
  #up(bars, step) {
    const brush = this.#brush;
    this.#dragging = false;
    this.#brush = null;
    if (brush) {
      const [a, b] = [Math.min(...brush), Math.max(...brush)];
      const bar = bars[this.#at];
      const [from, to] = this.app.range();
      if ((b - a) / (to - from) > 0.005) this.app.zoom(a, b);
      else if (bar && bar.warning + bar.rest > 0) this.app.zoom(bar.start, bar.start + step);
    }
    this.app.redraw();
  }

  /** @param {KeyboardEvent} e @param {Bar[]} bars @param {number} step */
  #key(e, bars, step) {
    const move = e.key === "ArrowLeft" ? -1 : e.key === "ArrowRight" ? 1 : e.key === "Home" ? -bars.length : e.key === "End" ? bars.length : 0;
    if (move !== 0) {
      const before = this.#at < 0 ? (move > 0 ? -1 : bars.length) : this.#at;
      this.#at = Math.max(0, Math.min(bars.length - 1, before + move));
      const bar = bars[this.#at];
      if (!e.shiftKey) this.#brush = null;
      else this.#brush = this.#brush ? [this.#brush[0], move > 0 ? bar.start + step : bar.start] : [bar.start, bar.start + step];
    } else if (e.key === "Enter" && this.#at >= 0) {
      this.#brush ??= [bars[this.#at].start, bars[this.#at].start + step];
      this.#up(bars, step);
    } else if (e.key === "Escape" && this.#brush) {
      this.#brush = null;
    } else {
      return;
    }
    e.preventDefault();
    e.stopPropagation();
    this.app.redraw();
  }

  stop() {
    this.#observer?.disconnect();
    this.search.answer.stop();
    this.edits.stop();
  }
}


/**
 * All bars of the range, those of which the answer says nothing too.
 * @param {Answer} data @param {number} from @param {number} to @param {number} step @returns {Bar[]}
 */
function barsOf(data, from, to, step) {
  const filled = new Map(data.buckets.map((b) => [Date.parse(b.start), b]));
  const bars = [];
  for (let start = Math.floor(from / step) * step; start < to; start += step) {
    const b = filled.get(start);
    const warning = b?.counts?.Warning ?? 0;
    bars.push({ start, warning, rest: (b?.count ?? 0) - warning });
  }
  return bars;
}

/** @param {Bar} b @param {number} step */
function say(b, step) {
  const all = b.warning + b.rest;
  return `${absolute(b.start)} + ${duration(step)}: ${all === 0 ? "nothing" : `${counted(b.warning, "warning")}, ${b.rest.toLocaleString("en")} others`}`;
}

/** @param {Answer} data */
const summary = (data) => `${counted(data.total, "occurrence")} from ${absolute(parseInstant(data.range.from))} to ${absolute(parseInstant(data.range.to))}`;
