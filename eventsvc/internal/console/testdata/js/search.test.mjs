import assert from "node:assert/strict";
import test from "node:test";
import { excerpt, find, stem } from "../../static/help/search.js";

const entries = [
  { title: "When the disk is full", page: "Space", url: "a", text: "eventsvc refuses new events; store_full is 1" },
  { title: "store_full", page: "Metrics", url: "b", text: "gauge: 1 if there is no room" },
  { title: "--max-bytes", page: "Settings", url: "c", text: "bytes that the files may take" },
  { title: "Retention", page: "Space", url: "d", text: "the disk holds a week" },
  { title: "Change the keys", page: "Keys", url: "e", text: "rotating keys needs no restart; a certificate is another thing" },
];

test("the best is first", () => {
  for (const [question, ...want] of [
    [""],
    ["  "],
    ["store_full", "b", "a"],
    ["max-bytes", "c"],
    ["--MAX-bytes", "c"],
    ["disk full", "a"],
    ["disks", "a", "d"],
    ["rotation", "e"],
    ["x509", "e"],
    ["certif", "e"],
    ["unicorn"],
  ]) {
    const found = find(entries, question).map((e) => e.url);
    assert.deepEqual(found.slice(0, want.length), want, `${question}: ${found}`);
    if (want.length === 0) assert.deepEqual(found, [], question);
  }
});

test("any word finds, all words find first", () => {
  assert.deepEqual(find(entries, "disk of unicorns").map((e) => e.url), ["a", "d"]);
  assert.equal(find(entries, "week on the disk")[0].url, "d");
});

test("a word that the manual does not have finds those that differ by one letter", () => {
  for (const word of ["retenion", "retemtion", "rettention"]) assert.equal(find(entries, word)[0]?.url, "d", word);
  assert.deepEqual(find(entries, "unicorns"), []);
});

test("words that follow each other as in the question find first", () => {
  const apart = { title: "One", page: "One", url: "one", text: "a system, read by people only, with a file" };
  const together = { title: "Two", page: "Two", url: "two", text: "with people, by a read only file system" };
  for (const list of [[apart, together], [together, apart]]) assert.equal(find(list, "read-only file system")[0].url, "two");
});

test("two words may be written as one, and one as two", () => {
  const list = [
    { title: "Set up a machine", page: "Set up", url: "set", text: "how to set it up" },
    { title: "Data", page: "Data", url: "data", text: "where a source of data is" },
    { title: "Panels", page: "Panels", url: "panels", text: "the datasource of a panel" },
  ];
  assert.equal(find(list, "setup")[0]?.url, "set");
  assert.ok(find(list, "data source").some((e) => e.url === "panels"));
});

test("what people call things, in any form of the word", () => {
  for (const word of ["pkix", "truststore", "truststores", "keystore", "x509"]) assert.equal(find(entries, word)[0]?.url, "e", word);
});

test("words of one stem", () => {
  for (const group of ["rotate rotates rotated rotating rotation", "stop stops stopped stopping", "policy policies", "expire expires expired expiring"]) {
    assert.equal(new Set(group.split(" ").map(stem)).size, 1, group.split(" ").map(stem).join(" "));
  }
});

test("not more than a screen, and not all of one page", () => {
  assert.equal(find(Array.from({ length: 100 }, (_, i) => ({ ...entries[0], page: String(i) })), "disk").length, 8);
  assert.equal(find(Array.from({ length: 100 }, () => entries[0]), "disk").length, 3);
});

test("an excerpt surrounds the word", () => {
  const text = `${"a ".repeat(100)}needle${" b".repeat(200)}`;
  const got = excerpt(text, "the Needle b");
  assert.ok(got.startsWith("…") && got.includes("needle") && got.endsWith("…") && got.length <= 182, got);
  assert.equal(excerpt("short", "short"), "short");
});
