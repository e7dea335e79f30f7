import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { Failure } from "../../static/js/lib/api.js";
import { row } from "../../static/js/lib/event.js";
import { Again, matcher, Tail } from "../../static/js/lib/tail.js";

globalThis.addEventListener ??= () => {};

/** @param {string} namespace @param {number} revision */
const added = (namespace, revision) => ({
  type: "ADDED",
  object: { metadata: { namespace, name: `e${revision}`, uid: `u${revision}`, resourceVersion: String(revision), creationTimestamp: "2026-03-04T12:00:00Z" }, regarding: { kind: "Pod", name: "p" }, reason: "R", type: "Normal", note: "n" },
});

test("each namespace goes on where it was", async () => {
  /** @type {{namespace: string, at: string, take: Function, signal: AbortSignal, fail: (err: Error) => void}[]} */
  const watches = [];
  const api = {
    events: (/** @type {string} */ namespace) => namespace,
    watch: (/** @type {string} */ namespace, /** @type {any} */ params, /** @type {AbortSignal} */ signal, /** @type {Function} */ take, /** @type {() => void} */ opened) => new Promise((_, reject) => {
      watches.push({ namespace, at: params.resourceVersion, take, signal, fail: reject });
      signal.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
      opened();
    }),
  };
  const tail = new Tail(/** @type {any} */ (api), ["slow", "fast"], {}, () => true, () => {});
  tail.start("10");
  assert.deepEqual(watches.map((w) => [w.namespace, w.at]), [["slow", "10"], ["fast", "10"]]);
  watches[0].take([added("slow", 11)]);
  watches[1].take([added("fast", 12), added("fast", 90)]);
  for (const w of watches) w.fail(new Failure("unreachable", "away"));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(tail.phase, "waiting");
  tail.retry();
  assert.deepEqual(watches.slice(2).map((w) => [w.namespace, w.at]), [["slow", "11"], ["fast", "90"]]);
  watches[2].take([added("slow", 40)]);
  assert.equal(tail.arrived.length, 4);
  tail.stop();
});

test("an attempt is made again until it succeeds", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const again = new Again();
  let tried = 0;
  const attempt = () => { if (++tried < 4) again.later(attempt); else again.stop(); };
  again.later(attempt);
  mock.timers.tick(500);
  assert.equal(tried, 1);
  mock.timers.tick(999);
  assert.equal(tried, 1);
  mock.timers.tick(1);
  assert.equal(tried, 2);
  again.now();
  assert.equal(tried, 3);
  mock.timers.tick(60_000);
  assert.equal(tried, 4);
  assert.equal(again.attempt, null);
  mock.timers.reset();
});

test("an event is matched by the tree of the search", () => {
  const { object } = added("shop", 1);
  const e = { ...object, metadata: { ...object.metadata, labels: { app: "web" } }, note: "Failed to pull (3)", regarding: { kind: "Pod", name: "web.0", fieldPath: "spec" } };
  const yes = { field: "kind", values: ["POD"] }, no = { field: "name", values: ["WEB.0"] };
  for (const [tree, want] of /** @type {[any, boolean][]} */ ([
    [undefined, true], [yes, true], [no, false], [{ not: no }, true], [{ not: yes }, false], [{ all: [yes, no] }, false], [{ any: [no, yes] }, true], [{ any: [no, { not: yes }] }, false],
    [{ word: "TO PULL" }, true], [{ word: "WEB.0" }, true], [{ word: "WEB.0", note: true }, false], [{ word: "3)" }, true], [{ field: "name", values: ["web*", "x"] }, true], [{ field: "name", values: ["web-0"] }, false],
    [{ field: "path", values: ["spec"] }, true], [{ field: "owner", values: [""] }, true], [{ label: "app" }, true], [{ label: "app", values: ["w*"] }, true], [{ label: "toString" }, false], [{ not: { label: "app", values: ["x"] } }, true],
    [{ field: "pattern", values: ["x"] }, true], [{ all: [{ not: { field: "pattern", values: ["x"] } }, no] }, false], [{ any: [{ field: "pattern", values: ["x"] }, no] }, true],
  ])) assert.equal(matcher(tree)(row(e), e), want, JSON.stringify(tree));
});
