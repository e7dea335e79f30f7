// Completion of what is written in the search box: the fields, and the values that occur
// in the range that is looked at.

import { human } from "../lib/event.js";
import { dimensions, fields, parameters, parse, write, writeAll } from "../lib/grammar.js";
import { Resource } from "../lib/load.js";

/**
 * One completion: the draft it makes, and whether that is a whole term.
 * @typedef {{text: string, label: string, help: string, done: boolean}} Offer
 */

const counted = new Set(dimensions);

export class Completion {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Resource<{value: string, count: number}[]>} */
    this.values = new Resource(app.redraw);
    this.field = "";
  }

  /** @param {string} draft @returns {Offer[]} */
  offers(draft) {
    const m = /^(.*?)(-?)(?:([A-Za-z][\w.]*):)?([^\s:]*|"[^"]*)$/.exec(draft);
    if (!m) return [];
    const [, before, minus, field, word] = m;
    if (before && !/\s$/.test(before)) return [];
    if (field === undefined) {
      return Object.entries(fields).filter(([name]) => word === "" || name.startsWith(word.toLowerCase()) && name !== word)
        .map(([name, f]) => ({ text: `${before}${minus}${name}${name.endsWith(".") ? "" : ":"}`, label: `${minus}${name}${name.endsWith(".") ? "KEY" : ""}:`, help: f.help, done: false }));
    }
    if (!(field in fields)) return [];
    const part = word.replace(/^"/, "").toLowerCase();
    return this.#valuesOf(field)
      .filter((v) => v.value.toLowerCase().includes(part))
      .sort((a, b) => Number(b.value.toLowerCase().startsWith(part)) - Number(a.value.toLowerCase().startsWith(part)))
      .slice(0, 12)
      .map((v) => ({ text: before + write({ field, value: v.value, not: minus !== "" }), label: v.value, help: human(v.count), done: true }));
  }

  /**
   * The values of a field in the range, with what else is asked for.
   * @param {string} field
   */
  #valuesOf(field) {
    const { app } = this;
    const object = field === "name" || field === "uid";
    if (!counted.has(field) && !object || !app.session.open) return [];
    const rest = writeAll(parse(app.state.q).filter((t) => t.field !== field && (t.field || !object)));
    const question = { ...app.question(), search: undefined, ...parameters(rest) };
    if (this.field !== field) this.values.data = undefined;
    this.field = field;
    this.values.want(JSON.stringify([field, question]), async (signal) => {
      if (!object) return (await app.api.query("facets", { ...question, by: field, limit: "200" }, signal)).facets[field] ?? [];
      const answer = await app.api.query("groups", { ...question, by: "object", limit: "200" }, signal);
      return answer.groups.map((/** @type {any} */ g) => ({ value: g.by.object[field], count: g.count }));
    });
    return (this.values.data ?? []).filter((v) => v.value !== "");
  }
}
