import assert from "node:assert/strict";
import test from "node:test";
import { roundUp, stepFor, timeTicks } from "../../static/js/lib/axis.js";
import { clear, counted, human, rate, row } from "../../static/js/lib/event.js";
import { nodeOf, owners } from "../../static/js/lib/owners.js";
import * as time from "../../static/js/lib/time.js";
import { document } from "../../static/js/lib/yaml.js";
import { sorted } from "../../static/js/parts/tablehead.js";

time.reading.zone = "utc";

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

test("YAML quotes what would be read as something else", () => {
  assert.equal(document({ a: "x", b: "yes", c: "1", d: "", e: [1, { f: true }], g: {}, h: [], i: null, "k: l": "m: n", o: "two\nlines" }),
    'a: x\nb: "yes"\nc: "1"\nd: ""\ne:\n  - 1\n  - f: true\ng: {}\nh: []\ni: null\n"k: l": "m: n"\no: |-\n  two\n  lines\n');
});

test("what cannot be seen in a text is shown as a mark", () => {
  assert.equal(clear("invoice\u202egnp.exe\u202c"), "invoice[U+202E]gnp.exe[U+202C]");
  assert.equal(clear("a\u200bb\u0000c"), "a[U+200B]b[U+0000]c");
  assert.equal(clear("\u{1F469}\u200d\u{1F4BB} \u{1F44B}\u{1F3FD}\u200d\u2642\ufe0f"), "\u{1F469}\u200d\u{1F4BB} \u{1F44B}\u{1F3FD}\u200d\u2642\ufe0f");
  assert.equal(clear("a\u200d\u{1F4BB} \u{1F4BB}\u200db"), "a[U+200D]\u{1F4BB} \u{1F4BB}[U+200D]b");
  assert.equal(clear("two\nlines\tand ä 日本 עברית"), "two\nlines\tand ä 日本 עברית");
});

test("rows are sorted by a column, names with numbers as people count", () => {
  const rows = ["web-10", "web-2", "api"].map((name, i) => ({ kind: "Pod", name, count: i }));
  assert.deepEqual(sorted(rows, "object").map((r) => r.name), ["api", "web-2", "web-10"]);
  assert.deepEqual(sorted(rows, "-count").map((r) => r.name), ["api", "web-2", "web-10"]);
  assert.equal(sorted(rows, "constructor"), rows);
});
