import assert from "node:assert/strict";
import test from "node:test";
import { brushed, read } from "../../static/js/lib/address.js";
import { below, isBelow } from "../../static/js/lib/owners.js";
import { courseOf, courseOfRow, spoken } from "../../static/js/lib/state.js";
import { minute, second } from "../../static/js/lib/time.js";

const now = Date.now();

test("a series goes on, or is over, by its own rhythm", () => {
  for (const [count, first, last, want] of [
    [1, 0, 0, "once"], [10, 90 * second, 0, "ongoing"], [10, 150 * second, 60 * second - second, "ongoing"], [10, 200 * second, 110 * second, "over"],
    [3, 130 * minute, 10 * minute, "ongoing"], [3, 400 * minute, 280 * minute, "over"],
  ]) assert.equal(courseOfRow({ count, first: now - first, time: now - last }, "now").state, want, `${count} until ${last}`);
  assert.equal(courseOfRow({ count: 10, first: 0, time: 9 * minute }, "1970-01-01T00:10:00Z").state, "ongoing"); // as it was then
});

test("a state is spoken", () => {
  const of = (c) => spoken(courseOf({ first: "2026-03-04T12:00:00Z", last: "2026-03-04T12:10:00Z", ...c }), Date.parse("2026-03-04T12:16:00Z"));
  assert.equal(of({ state: "ongoing", every: 300 }), "goes on, every 5m");
  assert.equal(of({ state: "ongoing", every: 180 }), "goes on, every 3m, the last one 6m ago");
  assert.equal(of({ state: "over", every: 10 }), "over for 6m, since 03-04 12:10, had come every 10s");
  assert.equal(of({ state: "once", first: "2026-03-04T12:10:00Z" }), "once");
  assert.equal(of({ state: "once" }), "last 6m ago");
  assert.equal(of({ state: "ongoing" }), "goes on");
});

test("what is below an object is found by its owner or its name", () => {
  assert.equal(below("Deployment", "web", "shop"), 'namespace:"shop" kind:ReplicaSet,Pod (name:"web-*" OR owner:"Deployment/web")');
  assert.equal(below("Node", "node-1", ""), 'node:"node-1" -kind:Node');
  assert.equal(below("Pod", "web-0", "shop"), "");
  const row = (kind, name, owner = "") => ({ kind, name, ns: "shop", owner });
  for (const [r, kind, name, want] of [
    [row("Pod", "web-7d9f8b6c5-x2xk9"), "Deployment", "web", true], [row("ReplicaSet", "web-7d9f8b6c5"), "Deployment", "web", true], [row("Pod", "web-api-7d9f8b6c5-x2xk9"), "Deployment", "web", false],
    [row("Pod", "other", "Deployment/web"), "Deployment", "web", true], [row("Pod", "ledger-0"), "StatefulSet", "ledger", true], [row("PersistentVolumeClaim", "data-ledger-0"), "StatefulSet", "ledger", true],
    [row("Pod", "nightly-29012345-x2xk9"), "CronJob", "nightly", true], [row("Pod", "any"), "Node", "node-1", true],
  ]) assert.equal(isBelow(r, kind, name), want, `${r.kind}/${r.name} below ${kind}/${name}`);
});

test("a range that was chosen has a window of changes", () => {
  const state = read("#/events?from=2026-03-04T12:00:00Z&to=2026-03-04T12:10:00Z");
  assert.deepEqual(brushed(state), { at: "2026-03-04T12:10:00Z", window: "10m", other: "" });
  assert.equal(brushed(read("#/events?from=-1h")), null);
});
