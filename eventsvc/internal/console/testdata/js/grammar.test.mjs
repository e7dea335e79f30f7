import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as g from "../../static/js/lib/grammar.js";

/** @param {string} field @param {string} value @param {boolean} [not] */
const term = (field, value, not = false) => ({ field, value, not });

const sentences = JSON.parse(readFileSync(new URL("../../../query/search/testdata/sentences.json", import.meta.url), "utf8"));

/** @param {string} text */
const read = (text) => g.parse(text).map((t) => ({ field: t.field, values: g.values(t), ...(t.not && { not: true }) }));

test("a sentence has the terms that it has for the server", () => {
  assert.ok(sentences.length >= 100);
  for (const { text, terms, written = text } of sentences.filter((s) => s.terms)) {
    assert.deepEqual(read(text), terms, text);
    assert.equal(g.writeAll(g.parse(text)), written, text);
    assert.deepEqual(read(written), terms, written);
    assert.equal(g.mistake(text), "", text);
  }
});

test("what the server refuses is read nevertheless, for it may be half written", () => {
  for (const { text } of sentences.filter((s) => s.refused)) assert.ok(g.parse(text).length > 0, text);
  for (const [text, ...want] of [
    ["reason:", term("reason", "")],
    ['"open', term("", "open")],
    ['a "open \\" b', term("", "a"), term("", 'open " b')],
    ["(a", term("()", "a")],
    ["a )", term("", "a"), term("", ")")],
    ["(".repeat(10_000), term("()", "(".repeat(9_999))],
  ]) assert.deepEqual(g.parse(String(text)), want, String(text));
});

test("terms are written so that they are read the same", () => {
  const values = ["a", "a b", 'say "no"', "-x", "a:b", "back\\slash", "<img src=x onerror=alert(1)>", "ünï", "x,y=z", "OR", "f(x)", "(", "a*"];
  for (const field of ["", "name", "reason", "label.app"]) {
    for (const value of values) {
      for (const not of [false, true]) {
        const t = term(field, value, not);
        assert.deepEqual(g.parse(g.write(t)), [t], g.write(t));
      }
    }
  }
});

test("a term takes the place of one that contradicts it", () => {
  assert.equal(g.add("reason:A x", term("reason", "B")), "x reason:B");
  assert.equal(g.add("reason:A", term("reason", "A", true)), "-reason:A");
  assert.equal(g.add("-reason:A", term("reason", "B", true)), "-reason:A -reason:B");
  assert.equal(g.without("reason:A x", term("reason", "A")), "x");
  assert.equal(g.asks("reason:A -kind:Pod", "kind", "Pod"), "without");
});

test("terms become the parameters of a query", () => {
  assert.deepEqual(g.parameters(' type:Warning (a OR b)'), { search: "type:Warning (a OR b)" });
  assert.deepEqual(g.parameters(""), {});
  assert.equal(g.listSelector(g.parse("kind:Pod reporter:kubelet -type:Normal reason:a,b name:x*")), "regarding.kind=Pod,type!=Normal");
  assert.equal(g.add("a OR b", term("type", "Warning")), "(a OR b) type:Warning");
});

test("a term fits values", () => {
  for (const [text, value, want] of [["kind:pod", "Pod", true], ["kind:po*", "Pod", true], ["kind:job,POD", "Pod", true], ["kind:job", "Pod", false], ["name:a.b", "axb", false],
    ["name:Web", "web", false], ["name:W*", "Web", true], ['reason:"a,b",c', "a,b", true]]) {
    assert.equal(g.fits(g.parse(String(text))[0], String(value)), want, String(text));
  }
});

test("what is wrong is said", () => {
  assert.equal(g.mistake("reason:A kind:Pod -reason:B word"), "");
  assert.match(g.mistake("reason:A reason:B"), /cannot be both A and B/);
  assert.match(g.mistake("reason:"), /reason has no value/);
  assert.match(g.mistake("label:app:"), /has no value/);
  assert.match(g.mistake("reason:a,"), /has no value/);
  assert.match(g.mistake("kind:a,b kind:c"), /cannot be both a,b and c/);
  for (const text of ["type:Warning type:warning", "kind:a,b kind:b", "note:a note:b", "reason:a OR reason:b", 'a "b\\\\"']) assert.equal(g.mistake(text), "", text);
  assert.equal(g.mistake("owner="), ""); // without a value
  assert.match(g.mistake('"open'), /no second one/);
  for (const text of ["(", "a (b", "(a OR (b)"]) assert.match(g.mistake(text), /not closed/, text);
  for (const text of ["()", "a ( )"]) assert.match(g.mistake(text), /nothing in it/, text);
});
