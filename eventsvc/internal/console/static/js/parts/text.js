// Texts of events as they are read: what nobody reads, such as hashes, is dimmed, and how many lines a text takes is known before it is
// drawn, so that rows of a table have their height.

import { h } from "../lib/dom.js";
import { clear } from "../lib/event.js";
import { absolute, short, weekday } from "../lib/time.js";

const letters = "[bcdf-hj-np-tv-z2-9]"; // of generated suffixes

/** What is made by chance: digests, UIDs, the ends of names that controllers make. */
const chance = new RegExp([
  "(?:sha\\d+:)?\\b(?=[a-f]*\\d)[0-9a-f]{12,}\\b", "\\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\\b",
  ...[`${letters}{6,10}-${letters}{5}`, `(?=[a-z]*\\d)${letters}{5}`, `(?=[a-z]*\\d)${letters}{8,10}`].map((end) => `(?<=[a-z0-9])-${end}(?![\\w-]|\\.\\w)`),
].join("|"), "g");

/**
 * A text with its hashes dimmed.
 * @param {string} text @returns {import("../lib/dom.js").Child[]}
 */
export function dimmed(text) {
  /** @type {import("../lib/dom.js").Child[]} */
  const out = [];
  let end = 0;
  for (const m of text.matchAll(chance)) {
    out.push(clear(text.slice(end, m.index ?? 0)), h("span", { class: "dim" }, m[0]));
    end = (m.index ?? 0) + m[0].length;
  }
  out.push(clear(text.slice(end)));
  return out;
}

/**
 * A text of at most so many characters: what is between its beginning and its end is left out, as messages often end with their cause.
 * @param {string} text @param {number} most
 */
export function bothEnds(text, most) {
  if (text.length <= most) return text;
  const begin = text.slice(0, most * 0.55).replace(/\s\S{0,15}$/, "");
  return `${begin} … ${text.slice(text.length - most * 0.45 + 3).replace(/^\S{0,15}\s/, "")}`;
}

/**
 * A message pattern, with its placeholders told apart from its text.
 * @param {string} text @returns {import("../lib/dom.js").Child[]}
 */
export const patterned = (text) => text.split(/(<(?:num|name|uuid|hash|time|ip|address|url|path|image)>)/).map((part, i) => (i % 2 ? h("span", { class: "placeholder" }, part) : clear(part)));

/**
 * A sentence of the server with its times, which are in UTC, as they are read here.
 * @param {string} text @returns {import("../lib/dom.js").Child[]}
 */
export function localised(text) {
  return text.split(/((?:[A-Z][a-z]+day )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\dZ| UTC))/).map((part, i) => {
    if (i % 2 === 0) return dimmed(part);
    const at = Date.parse(part.replace(/^[a-z]+ /i, "").replace(" UTC", ":00Z").replace(" ", "T"));
    return h("time", { title: absolute(at) }, /^[A-Z]/.test(part) && `${weekday(at)} `, short(at));
  });
}

/**
 * Whether a name has a part made by chance.
 * @param {string} name
 */
export const hashed = (name) => name.search(chance) >= 0;

/** The widths of characters in one font. */
export class Ruler {
  /** @type {CanvasRenderingContext2D|null} */
  #canvas = document.createElement("canvas").getContext("2d");
  /** @type {Map<string, number>} */
  #widths = new Map();
  font = "";

  /** @param {string} font as CSS has it */
  use(font) {
    if (font === this.font) return;
    this.font = font;
    this.#widths.clear();
    if (this.#canvas) this.#canvas.font = font;
  }

  /** @param {string} text */
  width(text) {
    let sum = 0;
    for (const c of text) sum += this.#of(c);
    return sum;
  }

  /** @param {string} c */
  #of(c) {
    let w = this.#widths.get(c);
    if (w === undefined) this.#widths.set(c, (w = this.#canvas?.measureText(c).width ?? 7));
    return w;
  }

  /**
   * How many lines a text takes, broken between words, and within those that are longer than a line.
   * @param {string} text @param {number} room of a line
   */
  lines(text, room) {
    if (text.length * 12 < room) return 1;
    let lines = 1;
    let x = 0; // of what stands in the line
    let word = 0; // of the word that is read
    for (const c of text) {
      const w = this.#of(c);
      if (c === " " || c === "\n") {
        x += word + w;
        word = 0;
        continue;
      }
      word += w;
      if (x + word <= room) continue;
      if (x > 0) lines++;
      x = 0;
      if (word > room) {
        lines++;
        word = w;
      }
    }
    return lines;
  }
}
