// Completion of what is written in the search box: the fields, and the values that occur
// in the range that is looked at.

import { human } from "../lib/event.js";
import { add, dimensions, fieldOf, fields, parameters, parse, write, writeAll } from "../lib/grammar.js";
import { Resource } from "../lib/load.js";

/**
 * One completion: the draft it makes, and whether that is a whole term.
 * @typedef {{text: string, label: string, help: string, done: boolean}} Offer
 */

const counted = new Set([...dimensions, "pattern"]);

export class Completion {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Resource<{value: string, count: number}[]>} */
    this.values = new Resource(app.redraw);
    this.field = "";
    this.cut = false;
  }

  /** @param {string} draft @returns {Offer[]} */
  offers(draft) {
    const m = /^(.*?)(-?)(?:([A-Za-z][\w.]*):)?([^\s:]*|"[^"]*)$/.exec(draft);
    if (!m) return [];
    const [, before, minus, name, word] = m;
    if (before && !/\s$/.test(before)) return [];
    if (name === undefined) {
      return Object.entries(fields).filter(([name]) => word === "" || name.startsWith(word.toLowerCase()) && name !== word)
        .map(([name, f]) => ({ text: `${before}${minus}${name}${name.endsWith(".") ? "" : ":"}`, label: `${minus}${name}${name.endsWith(".") ? "KEY" : ""}:`, help: f.help, done: false }));
    }
    const field = fieldOf(name.toLowerCase());
    if (!field) return [];
    const part = word.replace(/^"/, "").toLowerCase();
    return this.#valuesOf(field, part)
      .filter((v) => v.value.toLowerCase().includes(part))
      .sort((a, b) => Number(b.value.toLowerCase().startsWith(part)) - Number(a.value.toLowerCase().startsWith(part)))
      .slice(0, 12)
      .map((v) => ({ text: before + write({ field, value: v.value, not: minus !== "" }), label: v.value, help: human(v.count), done: true }));
  }

  /**
   * The values of a field in the range, within the rest of the search. If one answer cannot have all, only values that contain part.
   * @param {string} field @param {string} part
   */
  #valuesOf(field, part) {
    const { app } = this;
    const object = field === "name" || field === "uid";
    if (!counted.has(field) && !object || !app.session.open) return [];
    const rest = writeAll(parse(app.state.q).filter((t) => t.field !== field && (t.field || !object)));
    if (this.field !== field) {
      this.values.data = undefined;
      this.cut = false;
    }
    this.field = field;
    const some = this.cut && part && !object ? add(rest, { field, value: `*${part}*`, not: false }) : rest;
    const question = { ...app.question(), search: undefined, ...parameters(some) };
    this.values.want(JSON.stringify([field, question]), async (signal) => {
      if (!object) {
        const answer = await app.api.query("facets", { ...question, by: field, limit: "200" }, signal);
        this.cut ||= answer.other?.[field] > 0;
        return answer.facets[field] ?? [];
      }
      // Counting by object reads every event of the range. The objects of the newest ones are there at once.
      const answer = await app.api.query("events", { ...question, limit: "200" }, signal);
      /** @type {Map<string, number>} */
      const counts = new Map();
      for (const { regarding } of answer.items) counts.set(regarding[field] ?? "", (counts.get(regarding[field] ?? "") ?? 0) + 1);
      return [...counts].map(([value, count]) => ({ value, count }));
    });
    return (this.values.data ?? []).filter((v) => v.value !== "");
  }
}
