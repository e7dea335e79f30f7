import assert from "node:assert/strict";
import test from "node:test";
import * as address from "../../static/js/lib/address.js";
import { roundUp, stepFor, timeTicks } from "../../static/js/lib/axis.js";
import { clear, counted, human, rate, row } from "../../static/js/lib/event.js";
import { nodeOf, owners } from "../../static/js/lib/owners.js";
import { matcher } from "../../static/js/lib/tail.js";
import * as time from "../../static/js/lib/time.js";
import { document } from "../../static/js/lib/yaml.js";
import { sorted } from "../../static/js/parts/tablehead.js";

time.reading.zone = "utc";

test("instants are read as they are written", () => {
  const at = Date.UTC(2026, 2, 4, 12, 0, 5);
  assert.equal(time.absolute(at), "2026-03-04 12:00:05");
  for (const text of ["2026-03-04 12:00:05", "2026-03-04T12:00:05Z", "2026-03-04T14:00:05+02:00"]) assert.equal(time.parseInstant(text), at, text);
  assert.equal(time.parseInstant("2026-03-04"), Date.UTC(2026, 2, 4));
  assert.equal(time.rfc3339(at), "2026-03-04T12:00:05Z");
  for (const text of ["", "soon", "2026-13", "-6", "-6y"]) assert.ok(Number.isNaN(time.parseInstant(text)), text);
  assert.ok(Math.abs(time.parseInstant("-6h") - (Date.now() - 6 * time.hour)) < 5000);
  assert.ok(Math.abs(time.parseInstant("now-1d12h") - (Date.now() - 36 * time.hour)) < 5000);
});

test("times of a day, and ranges in one text", () => {
  const { parseInstant, parseRange, reading, clock, absolute } = time;
  reading.zone = "utc";
  const today = absolute(clock.now()).slice(0, 10);
  const yesterday = absolute(clock.now() - time.day).slice(0, 10);
  assert.equal(absolute(parseInstant("14:00")), `${today} 14:00:00`);
  assert.equal(absolute(parseInstant("yesterday 02:00")), `${yesterday} 02:00:00`);
  assert.equal(absolute(parseInstant("yesterday")), `${yesterday} 00:00:00`);
  assert.equal(absolute(parseInstant("9:05")), `${today} 09:05:00`);
  assert.deepEqual(parseRange("yesterday 02:00-03:00")?.map(absolute), [`${yesterday} 02:00:00`, `${yesterday} 03:00:00`]);
  assert.deepEqual(parseRange("2026-03-04 2:00 - 03:30")?.map(absolute), ["2026-03-04 02:00:00", "2026-03-04 03:30:00"]);
  assert.equal(parseRange("-6h"), null);
  assert.equal(parseRange("2026-03-04 12:00"), null);
  assert.ok(Number.isNaN(parseInstant("someday")));
  assert.ok(Number.isNaN(parseInstant("25 o'clock")));
});

test("a time has what today and this year do not say", () => {
  const now = time.clock.now();
  const other = Date.UTC(2001, 1, 3, 4, 5, 6);
  assert.equal(time.dense(now), time.absolute(now).slice(5));
  assert.equal(time.dense(other), "2001-02-03 04:05");
  assert.equal(time.brief(now), time.absolute(now).slice(11));
  assert.equal(time.brief(now - time.day), time.short(now - time.day));
});

test("durations are written in two units at most", () => {
  for (const [text, want] of [["1h", "1 hour"], ["15m", "15 minutes"], ["-6h", "6 hours"], ["1h30m", "1h30m"]]) assert.equal(time.spelled(text), want);
  for (const [ms, want] of [[45e3, "45s"], [200e3, "3m 20s"], [3600e3, "1h"], [7500e3, "2h 5m"], [2 * time.day + time.hour, "2d 1h"], [21 * time.day, "21d"]]) assert.equal(time.duration(Number(ms)), want);
  assert.equal(time.parameter(36 * time.hour), "1d12h");
  assert.equal(time.parseDuration("1d12h"), 36 * time.hour);
});

test("the clock of the server is taken where the two differ", () => {
  time.clock.observe(new Date(Date.now() + time.hour).toUTCString(), Date.now());
  assert.ok(time.clock.disagrees);
  assert.ok(Math.abs(time.clock.now() - Date.now() - time.hour) < 2000);
  time.clock.observe(new Date().toUTCString(), Date.now());
  assert.ok(!time.clock.disagrees);
});

test("an event is at the time that kubectl's tables show", () => {
  const [first, last, at, series] = ["10", "11", "12", "13"].map((h) => `2026-03-04T${h}:00:00.000000Z`);
  const times = { eventTime: at, deprecatedFirstTimestamp: first, deprecatedLastTimestamp: last, series: { count: 2, lastObservedTime: series } };
  for (const [unset, want] of [["", series], ["series", last], ["deprecatedLastTimestamp", first], ["deprecatedFirstTimestamp", at]]) {
    delete times[unset];
    assert.equal(row(times).time, Date.parse(want), unset);
  }
  for (const eventTime of ["0001-01-02T00:00:00.000000Z", "1969-12-31T23:59:59.000000Z", "9999-12-31T00:00:00.000000Z", null]) {
    assert.equal(row({ eventTime, metadata: { creationTimestamp: "2026-03-04T10:00:00Z" } }).time, Date.UTC(2026, 2, 4, 10), String(eventTime));
  }
});

test("the state and its address are the same", () => {
  const state = { ...address.read(""), view: "events", q: 'reason:A "x & y" #', event: "ns/name", from: "2026-03-04T12:00:00Z", revision: "7" };
  assert.deepEqual(address.read(address.write(state)), state);
  assert.equal(address.write(address.read("#/overview")), "#/overview");
  assert.equal(address.read("#/events?nosuch=1&__proto__=2").view, "events");
});

test("axes have round numbers", () => {
  for (const [n, want] of [[0, 1], [3, 3], [11, 20], [340, 400], [999, 1000], [1230, 1500]]) assert.equal(roundUp(n), want);
  assert.equal(stepFor(time.day, 120), "15m");
  for (const range of [1000, 60e3, time.hour, time.day, 400 * time.day]) {
    const ticks = timeTicks(0, range, 8);
    assert.ok(ticks.length >= 1 && ticks.length <= 9, `${range}: ${ticks.length}`);
  }
});

test("an event becomes a row", () => {
  const r = row({
    metadata: { namespace: "shop", name: "e", resourceVersion: "5" }, eventTime: "2026-03-04T12:00:00Z", series: { count: 7, lastObservedTime: "2026-03-04T12:30:00Z" },
    regarding: { kind: "Pod", name: "web-0", namespace: "shop" }, reason: "BackOff", type: "Warning", note: "n", reportingController: "kubelet", reportingInstance: "node-1",
  });
  assert.equal(r.id, "shop/e");
  assert.equal(r.count, 7);
  assert.equal(r.time - r.first, 30 * time.minute);
  assert.equal(r.host, "node-1");
  assert.equal(row({}).count, 1);
  assert.equal(rate(7, r.first, r.time), "12 an hour");
  assert.equal(human(165900), "165.9k");
  assert.equal(human(999960), "1M");
  assert.equal(counted(1, "event"), "1 event");
});

test("owners are read from names", () => {
  const of = (kind, name) => owners(kind, name, "ns").map((o) => `${o.kind}/${o.name}`);
  assert.deepEqual(of("Pod", "web-7d5fb757db-x2x7q"), ["ReplicaSet/web-7d5fb757db", "Deployment/web", "Job/web-7d5fb757db"]);
  assert.deepEqual(of("Pod", "db-0"), ["StatefulSet/db"]);
  assert.ok(of("Pod", "backup-29384750-x2x7q").includes("CronJob/backup"));
  assert.deepEqual(of("ReplicaSet", "web-7d5fb757db"), ["Deployment/web"]);
  assert.deepEqual(of("Node", "node-1"), []);
  assert.equal(nodeOf({ note: "Successfully assigned shop/web-0 to node-3" }), "node-3");
  assert.equal(nodeOf({ reportingController: "kubelet", reportingInstance: "node-4" }), "node-4");
  assert.equal(nodeOf({ reportingController: "x" }), "");
});

test("what arrives is compared with the search", () => {
  const r = { type: "Warning", reason: "BackOff", note: "Back-off restarting", id: "shop/e", kind: "Pod", name: "a", ns: "", uid: "", namespace: "shop", reporter: "", cluster: "" };
  const matches = (...terms) => matcher(terms)(/** @type {any} */ (r));
  assert.ok(matches({ field: "type", value: "Warning", not: false }, { field: "", value: "RESTART", not: false }));
  assert.ok(!matches({ field: "", value: "restart", not: true }));
  assert.ok(!matches({ field: "reason", value: "Other", not: false }));
  assert.ok(matches({ field: "note", value: "other,back", not: false, list: true }));
});

test("YAML quotes what would be read as something else", () => {
  assert.equal(document({ a: "x", b: "yes", c: "1", d: "", e: [1, { f: true }], g: {}, h: [], i: null, "k: l": "m: n", o: "two\nlines" }),
    'a: x\nb: "yes"\nc: "1"\nd: ""\ne:\n  - 1\n  - f: true\ng: {}\nh: []\ni: null\n"k: l": "m: n"\no: |-\n  two\n  lines\n');
});

test("what cannot be seen in a text is shown as a mark", () => {
  assert.equal(clear("invoice\u202egnp.exe\u202c"), "invoice[U+202E]gnp.exe[U+202C]");
  assert.equal(clear("a\u200bb\u0000c"), "a[U+200B]b[U+0000]c");
  assert.equal(clear("two\nlines\tand ä 日本 עברית"), "two\nlines\tand ä 日本 עברית");
});

test("rows are sorted by a column, names with numbers as people count", () => {
  const rows = ["web-10", "web-2", "api"].map((name, i) => ({ kind: "Pod", name, count: i }));
  assert.deepEqual(sorted(rows, "object").map((r) => r.name), ["api", "web-2", "web-10"]);
  assert.deepEqual(sorted(rows, "-count").map((r) => r.name), ["api", "web-2", "web-10"]);
  assert.equal(sorted(rows, "constructor"), rows);
});
