import assert from "node:assert/strict";
import test from "node:test";
import { Heights } from "../../static/js/parts/heights.js";
import { reading } from "../../static/js/lib/time.js";
import { bothEnds, dimmed, hashed, localised, patterned, Ruler } from "../../static/js/parts/text.js";

globalThis.document = { createElement: () => ({ getContext: () => ({ measureText: () => ({ width: 10 }) }) }) };

test("what is made by chance is dimmed", () => {
  for (const [text, want] of [
    ["web-7d9f8b6c5-x2xk9", ["-7d9f8b6c5-x2xk9"]], ["web-lgjtccmpf-zssqq", ["-lgjtccmpf-zssqq"]], ["coredns-x2xk9", ["-x2xk9"]], ["web-7d9f8b6c54", ["-7d9f8b6c54"]],
    ["pull of sha256:0123456789abcdef0123 for web-7d9f8b6c5-x2xk9.", ["sha256:0123456789abcdef0123", "-7d9f8b6c5-x2xk9"]],
    ["pod 0f1e2d3c-0000-4000-8000-00000000000a", ["0f1e2d3c-0000-4000-8000-00000000000a"]],
    ["kube-proxy", []], ["ledger-0", []], ["node-17", []], ["shop-api-test", []], ["web-7d9f8b6c5-x2xk9.example.com", []], ["deadbeefdead", []], ["", []],
  ]) {
    assert.deepEqual(dimmed(text).filter((c) => typeof c === "object").map((c) => c.children[0]), want, text);
    assert.equal(hashed(text), want.length > 0, text);
    assert.equal(dimmed(text).map((c) => (typeof c === "object" ? c.children[0] : c)).join(""), text);
  }
});

test("a text that is cut keeps both ends", () => {
  for (const [text, want] of [
    ["short enough", "short enough"], ["x".repeat(40), "x".repeat(40)],
    ["Failed to pull image web:1.2: rpc error: code = Unknown: too many requests", "Failed to pull image … many requests"],
    ["a".repeat(90), `${"a".repeat(22)} … ${"a".repeat(15)}`],
  ]) assert.equal(bothEnds(text, 40), want);
});

test("placeholders of a pattern are told apart from its text", () => {
  for (const [text, want] of [
    ["Scaled <name> from <num> to <num>.", ["<name>", "<num>", "<num>"]], ["<image>", ["<image>"]], ["<b>bold</b> <script> <number> <num", []], ["<<ip>>", ["<ip>"]], ["", []],
  ]) {
    const parts = patterned(text);
    assert.deepEqual(parts.filter((c) => typeof c === "object").map((c) => c.children[0]), want, text);
    assert.equal(parts.map((c) => (typeof c === "object" ? c.children[0] : c)).join(""), text);
  }
});

test("a text takes as many lines as a browser breaks it into", () => {
  const ruler = new Ruler();
  for (const [text, room, want] of [["", 100, 1], ["one two", 70, 1], ["one two", 69, 2], ["a bb ccc dddd", 50, 3], ["x".repeat(25), 100, 3], ["ab " + "x".repeat(12), 100, 3], ["one\ntwo", 50, 2]]) {
    assert.equal(ruler.lines(text, room), want, `${text} in ${room}`);
  }
});

test("rows of different heights are found", () => {
  const heights = new Heights();
  const rows = [10, 30, 20].map((height) => ({ height }));
  heights.place(rows, "", (r) => r.height);
  assert.deepEqual([heights.total, heights.top(0), heights.top(1), heights.top(2), heights.top(3), heights.top(9)], [60, 0, 10, 40, 60, 60]);
  assert.deepEqual([-5, 0, 9, 10, 39, 40, 59, 60, 1e6].map((y) => heights.at(y)), [0, 0, 0, 1, 1, 2, 2, 2, 2]);
  heights.place(rows, "other", () => 1);
  assert.equal(heights.total, 3);
  heights.place([], "", () => 1);
  assert.deepEqual([heights.total, heights.at(5)], [0, 0]);
});

test("times of a sentence are those of the reader's zone", () => {
  const before = reading.zone;
  reading.zone = "local";
  process.env.TZ = "Europe/Berlin";
  const read = (c) => (Array.isArray(c) ? c.map(read).join("") : c && typeof c === "object" ? c.children.map(read).join("") : c || "");
  assert.equal(read(localised("Evicted since 2001-03-04T23:30:00Z; as on Sunday 2001-03-04 23:31 UTC (10 times), note 2001-03-04")), "Evicted since 2001-03-05 00:30; as on Monday 2001-03-05 00:31 (10 times), note 2001-03-04");
  delete process.env.TZ;
  reading.zone = before;
});
