import assert from "node:assert/strict";
import test from "node:test";
import * as g from "../../static/js/lib/grammar.js";

/** @param {string} field @param {string} value @param {boolean} [not] */
const term = (field, value, not = false) => ({ field, value, not });

test("a text becomes terms", () => {
  for (const [text, ...want] of [
    [""],
    ["reason:BackOff", term("reason", "BackOff")],
    ["-reason:BackOff", term("reason", "BackOff", true)],
    ["a -b", term("", "a"), term("", "b", true)],
    ['"image pull"', term("", "image pull")],
    ['-"image pull"', term("", "image pull", true)],
    ['name:"a b"', term("name", "a b")],
    ['"say \\"no\\""', term("", 'say "no"')],
    ["label.app:web", term("label.app", "web")],
    ["label.app.kubernetes.io/name:web", term("label.app.kubernetes.io/name", "web")],
    ["http://x", term("", "http://x")], // no field, but a word
    ["nosuch:x", term("", "nosuch:x")],
    ["name:a:b", term("name", "a:b")],
    ["reason:", term("reason", "")],
    ["-", term("", "-")],
    ['"open', term("", "open")],
    ["type=Warning ns:shop KIND:Pod", term("type", "Warning"), term("namespace", "shop"), term("kind", "Pod")],
    ["reason!=A reason==B", term("reason", "A", true), term("reason", "B")],
    ["reason:Failed*", term("reason", "Failed*")],
    ['reason:a,"b c" x', { ...term("reason", 'a,"b c"'), list: true }, term("", "x")],
    ["(a OR b) -(c) d", term("()", "a OR b"), term("()", "c", true), term("", "d")],
    ["a OR b c", term("()", "a OR b c")],
    ['"a OR b"', term("", "a OR b")],
    ["f(x) y", term("", "f(x)"), term("", "y")],
    ["label:app=web -label:a!=b", term("label.app", "web"), term("label.a", "b")],
    ["label:app!=web -label:app", term("label.app", "web", true), term("()", "label:app", true)],
    ["object:web-0 -object:Pod/web-0", term("name", "web-0"), term("()", "object:Pod/web-0", true)],
    ["regarding.name=x metadata.name!=y regarding.apiVersion=v1", term("name", "x"), term("event", "y", true), term("()", "regarding.apiVersion=v1")],
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
  for (const [text, value, want] of [["kind:pod", "Pod", true], ["kind:po*", "Pod", true], ["kind:job,POD", "Pod", true], ["kind:job", "Pod", false], ["name:a.b", "axb", false]]) {
    assert.equal(g.fits(g.parse(String(text))[0], String(value)), want, String(text));
  }
});

test("what is wrong is said", () => {
  assert.equal(g.mistake("reason:A kind:Pod -reason:B word"), "");
  assert.match(g.mistake("reason:A reason:B"), /cannot be both A and B/);
  assert.match(g.mistake("reason:"), /has no value/);
  assert.equal(g.mistake("owner="), ""); // without a value
  assert.match(g.mistake('"open'), /no second one/);
});
