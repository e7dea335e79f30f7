import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as g from "../../static/js/lib/grammar.js";

/** @param {string} field @param {string} value @param {boolean} [not] */
const term = (field, value, not = false) => ({ field, value, not });

/** @param {string} text @param {import("../../static/js/lib/grammar.js").Term[]} terms */
const read = (text, ...terms) => (g.learn(text, terms), text);
const sentences = JSON.parse(readFileSync(new URL("../../../query/search/testdata/sentences.json", import.meta.url), "utf8"));

test("terms are written as the server reads them", () => {
  for (const { text, terms, written = text } of sentences.filter((s) => s.terms)) assert.equal(g.writeAll(terms.map(g.termOf)), written, text);
});

test("a text that was not read yet is one term", () => {
  assert.deepEqual(g.parse(" kind:Job OR x "), [term("()", "kind:Job OR x")]);
  assert.equal(g.add("kind:Job OR x", term("type", "Warning")), "(kind:Job OR x) type:Warning");
  assert.deepEqual(g.parse("(kind:Job OR x) type:Warning"), [term("()", "kind:Job OR x"), term("type", "Warning")]);
  for (let i = 0; i < 300; i++) g.learn(`word${i}`, [term("", `word${i}`)]);
  assert.equal(g.termsOf("word0"), undefined);
  assert.deepEqual(g.termsOf(""), []);
});

test("a term takes the place of one that contradicts it", () => {
  const two = read("reason:A x", term("reason", "A"), term("", "x"));
  assert.equal(g.add(two, term("reason", "B")), "x reason:B");
  assert.equal(g.without(two, term("reason", "A")), "x");
  assert.equal(g.add(read("reason:A", term("reason", "A")), term("reason", "A", true)), "-reason:A");
  const without = read("-reason:A -kind:Pod", term("reason", "A", true), term("kind", "Pod", true));
  assert.equal(g.add(without, term("reason", "B", true)), "-reason:A -kind:Pod -reason:B");
  assert.equal(g.asks(without, "kind", "Pod"), "without");
});

test("terms become the parameters of a query", () => {
  assert.deepEqual(g.parameters(" type:Warning (a OR b)"), { search: "type:Warning (a OR b)" });
  assert.deepEqual(g.parameters(""), {});
  assert.equal(g.listSelector([term("kind", "Pod"), term("reporter", "kubelet"), term("type", "Normal", true), g.termOf({ field: "reason", values: ["a", "b"] }), term("name", "x*")]), "regarding.kind=Pod,type!=Normal");
});
