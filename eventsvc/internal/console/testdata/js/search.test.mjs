import assert from "node:assert/strict";
import test from "node:test";
import { excerpt, find } from "../../static/help/search.js";

const entries = [
  { title: "When the disk is full", page: "Space", url: "a", text: "eventsvc refuses new events; store_full is 1" },
  { title: "store_full", page: "Metrics", url: "b", text: "gauge: 1 if there is no room" },
  { title: "--max-bytes", page: "Settings", url: "c", text: "bytes that the files may take" },
  { title: "Retention", page: "Space", url: "d", text: "the disk holds a week" },
];

test("the best is first", () => {
  for (const [question, ...want] of [
    [""],
    ["  "],
    ["store_full", "b", "a"],
    ["max-bytes", "c"],
    ["--MAX-bytes", "c"],
    ["disk full", "a"],
    ["disk", "a", "d"],
    ["space week", "d"],
    ["disk of gold"],
  ]) assert.deepEqual(find(entries, question).map((e) => e.url), want, question);
});

test("not more than a screen", () => {
  assert.equal(find(Array.from({ length: 100 }, () => entries[0]), "disk").length, 20);
});

test("an excerpt surrounds the word", () => {
  const text = `${"a ".repeat(100)}needle${" b".repeat(200)}`;
  const got = excerpt(text, "Needle b");
  assert.ok(got.startsWith("…") && got.includes("needle") && got.endsWith("…") && got.length <= 182, got);
  assert.equal(excerpt("short", "short"), "short");
});
