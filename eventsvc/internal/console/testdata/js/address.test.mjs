import assert from "node:assert/strict";
import test from "node:test";
import { begin, read, tokenIn, write } from "../../static/js/lib/address.js";

test("the state and its address are the same", () => {
  const some = {
    view: "events", q: 'reason:A "x & y" #?=%+\u{1F600}', from: "2026-03-04T12:00:00Z", to: "-5m", revision: "7", event: "ns/name", by: "kind", order: "-count",
    kind: "Pod", ns: "shop", name: "web-0", uid: "u", at: "-1h", window: "30m", other: "-2h",
  };
  assert.deepEqual(read(write(some)), some);
  assert.deepEqual(Object.keys(read("")).sort(), Object.keys(some).sort());
  for (const [name, value] of Object.entries(some)) {
    const state = { ...read(""), [name]: value };
    assert.deepEqual(read(write(state)), state, name);
  }
});

test("an address has what differs from an empty one", () => {
  assert.equal(write(read("")), "#/overview");
  assert.equal(write(read("#/changes?window=15m&at=now&ns=shop")), "#/changes?ns=shop");
  assert.equal(write({ ...read(""), view: "events", q: "" }), "#/events");
});

test("what is no part of the state is left out", () => {
  for (const fragment of ["#/events?nosuch=1&__proto__=2&constructor=3&view=groups", "#events", "events"]) {
    assert.deepEqual(read(fragment), { ...read(""), view: "events" }, fragment);
  }
  assert.equal(read("#/events?q=a&q=b").q, "b");
  assert.equal(read("#/events?q=a+b%20c").q, "a b c");
  assert.equal(read("#/events?q=%").q, "%");
});

test("a dump's range is that of an address without one", () => {
  begin("2026-03-04T12:00:00Z", "2026-03-05T12:00:00Z");
  assert.equal(read("").from, "2026-03-04T12:00:00Z");
  assert.equal(read("").at, "2026-03-05T12:00:00Z");
  assert.equal(write(read("")), "#/overview");
  assert.equal(read(write({ ...read(""), to: "now" })).to, "now");
  begin("-24h", "now");
});

test("the token of a dump is in its address alone", () => {
  assert.equal(tokenIn("#/overview?token=a.b-c&q=x"), "a.b-c");
  for (const fragment of ["", "#/overview", "#/overview?q=token", "token=a"]) assert.equal(tokenIn(fragment), "", fragment);
  assert.ok(!write(read("#/overview?token=secret&q=x")).includes("secret"));
});
