import assert from "node:assert/strict";
import test from "node:test";
import * as time from "../../static/js/lib/time.js";

const { absolute, clock, day, hour, minute, parseInstant, parseRange, reading, second } = time;

let now = Date.UTC(2026, 2, 4, 12, 0, 5);
Date.now = () => now;

/** @param {"utc"|"local"} zone @param {number} at @param {() => void} f */
function reader(zone, at, f) {
  const before = { zone: reading.zone, now };
  reading.zone = zone;
  now = at;
  f();
  reading.zone = before.zone;
  now = before.now;
}

/** @param {string} text */
const utc = (text) => Date.parse(text);

test("instants are read as they are written", () => reader("utc", now, () => {
  assert.equal(absolute(now), "2026-03-04 12:00:05");
  for (const [text, want] of [
    ["2026-03-04 12:00:05", now], ["2026-03-04T12:00:05Z", now], ["2026-03-04T14:00:05+02:00", now], ["2026-03-04 07:00:05-05:00", now],
    ["2026-03-04T12:00:05.250Z", now + 250], [" 2026-03-04 12:00 ", now - 5 * second], ["2026-03-04", utc("2026-03-04T00:00:00Z")],
    ["now", now], ["-6h", now - 6 * hour], ["now-6h", now - 6 * hour], ["+15m", now + 15 * minute], ["now-1d12h", now - 36 * hour], ["-2w", now - 14 * day],
  ]) assert.equal(parseInstant(String(text)), want, String(text));
  for (const text of ["", "soon", "someday", "2026-13", "2026-3-4", "-6", "-6y", "now 6h", "in 6h ago", "13-40 12:00", "2026-02-31", "2026-03-04 25:00", "25 o'clock", "Holiday 12:00", "last", "2026-03-04T12:00:05X", "yesterday soon", "13pm", "31.2.2026", "1.2.3"]) {
    assert.ok(Number.isNaN(parseInstant(text)), text);
  }
  for (const [text, want] of [
    ["03-03 14:02", utc("2026-03-03T14:02:00Z")], ["03-03 14:02:09", utc("2026-03-03T14:02:09Z")], ["11-20 14:02", utc("2025-11-20T14:02:00Z")],
    ["3d", now - 3 * day], ["6h", now - 6 * hour], ["3m 20s ago", now - 200 * second], ["in 2h 5m", now + 125 * minute], ["1h30m", now - 90 * minute],
    ["1772625605", now], ["1772625605250", now + 250], ["Last 3 days", now - 3 * day], ["last day", now - day], ["2 hours ago", now - 2 * hour], ["15 min", now - 15 * minute],
    ["Tuesday 03-03 14:02", utc("2026-03-03T14:02:00Z")], ["Tuesday 2026-03-03 14:02 UTC", utc("2026-03-03T14:02:00Z")], ["Tuesday 14:02", utc("2026-03-03T14:02:00Z")],
    ["thursday", utc("2026-02-26T00:00:00Z")], ["11:02 UTC", utc("2026-03-04T11:02:00Z")],
  ]) assert.equal(parseInstant(String(text)), want, String(text));
  for (const at of [now, now - minute, now - 40 * day, now - 400 * day, now + hour]) { // what the page writes, to its precision
    for (const write of [absolute, time.short, time.dense, time.brief]) assert.ok(Math.abs(parseInstant(write(at)) - at) < minute, write(at));
    assert.ok(Math.abs(parseInstant(time.relative(at)) - at) <= Math.max(day * 2, 0), time.relative(at));
  }
  assert.equal(time.rfc3339(now + 999), "2026-03-04T12:00:05Z");
  assert.equal(absolute(NaN), "–");
}));

test("times of a day are those of the reader's zone", () => {
  reader("utc", now, () => {
    for (const [text, want] of [
      ["14:00", "2026-03-04 14:00:00"], ["9:05", "2026-03-04 09:05:00"], ["today", "2026-03-04 00:00:00"], ["Today 1:02:03", "2026-03-04 01:02:03"],
      ["yesterday", "2026-03-03 00:00:00"], ["yesterday 02:00", "2026-03-03 02:00:00"],
      ["29.11.2025", "2025-11-29 00:00:00"], ["29.11.2025 14:30", "2025-11-29 14:30:00"], ["3.3. 14:30", "2026-03-03 14:30:00"], ["03-03", "2026-03-03 00:00:00"],
      ["2:30pm", "2026-03-04 14:30:00"], ["12:15 AM", "2026-03-04 00:15:00"], ["yesterday 2 p.m.", "2026-03-03 14:00:00"],
    ]) assert.equal(absolute(parseInstant(text)), want, text);
  });
  process.env.TZ = "Europe/Berlin"; // UTC+1, from 2026-03-29 01:00 UTC on UTC+2
  reader("local", utc("2026-03-04T23:30:00Z"), () => { // there it is the 5th
    assert.equal(parseInstant("00:15"), utc("2026-03-04T23:15:00Z"));
    assert.equal(parseInstant("yesterday 23:00"), utc("2026-03-04T22:00:00Z"));
    assert.equal(absolute(utc("2026-03-04T23:30:00Z")), "2026-03-05 00:30:00");
    assert.match(time.zoneName(), /^CES?T$/);
    for (const text of ["2026-03-04 23:30 UTC", "2026-03-05 00:30 CET"]) assert.equal(parseInstant(text), utc("2026-03-04T23:30:00Z"), text);
  });
  reader("local", utc("2026-03-29T10:00:00Z"), () => { // the clocks were put forward in the night
    assert.equal(parseInstant("01:30"), utc("2026-03-29T00:30:00Z"));
    assert.equal(parseInstant("03:30"), utc("2026-03-29T01:30:00Z"));
    assert.equal(absolute(utc("2026-03-29T00:59:59Z")), "2026-03-29 01:59:59");
    assert.equal(absolute(utc("2026-03-29T01:00:00Z")), "2026-03-29 03:00:00");
  });
  delete process.env.TZ;
});

test("both ends of a range may stand in one text", () => reader("utc", now, () => {
  for (const [text, from, to] of [
    ["02:00-03:00", "2026-03-04 02:00:00", "2026-03-04 03:00:00"], ["yesterday 02:00-03:00", "2026-03-03 02:00:00", "2026-03-03 03:00:00"],
    ["2026-02-28 2:00 - 03:30", "2026-02-28 02:00:00", "2026-02-28 03:30:00"], ["2:00–3:00:30", "2026-03-04 02:00:00", "2026-03-04 03:00:30"],
    ["14:02 to 14:07", "2026-03-04 14:02:00", "2026-03-04 14:07:00"], ["03-03 14:02 – 15:00", "2026-03-03 14:02:00", "2026-03-03 15:00:00"],
    ["11-20 14:02 – 11-21 09:00", "2025-11-20 14:02:00", "2025-11-21 09:00:00"], ["yesterday 9:00 to today 9:30", "2026-03-03 09:00:00", "2026-03-04 09:30:00"],
    ["1pm-2:30pm", "2026-03-04 13:00:00", "2026-03-04 14:30:00"], ["28.2.2026 14:30 – 1.3.2026", "2026-02-28 14:30:00", "2026-03-01 00:00:00"],
    ["3h to 1h", "2026-03-04 09:00:05", "2026-03-04 11:00:05"],
  ]) assert.deepEqual(parseRange(text)?.map(absolute), [from, to], text);
  for (const text of ["", "-6h", "2026-03-04 12:00", "someday 02:00-03:00", "02:00-"]) assert.equal(parseRange(text), null, text);
}));

test("a time has what today and this year do not say", () => reader("utc", now, () => {
  const [today, yesterday, other] = [now - 60 * minute, now - day, utc("2001-02-03T04:05:06Z")];
  assert.deepEqual([today, yesterday, other].map(time.dense), ["03-04 11:00:05", "03-03 12:00:05", "2001-02-03 04:05"]);
  assert.deepEqual([today, yesterday, other].map(time.brief), ["11:00:05", "03-03 12:00", "2001-02-03 04:05"]);
  assert.deepEqual([today, other].map(time.short), ["03-04 11:00", "2001-02-03 04:05"]);
}));

test("durations are written in two units at most", () => {
  for (const [text, want] of [["1h", "1 hour"], ["15m", "15 minutes"], ["-6h", "6 hours"], ["now-1w", "1 week"], ["1h30m", "1h30m"]]) assert.equal(time.spelled(text), want);
  for (const [ms, want] of [
    [0, "0s"], [45e3, "45s"], [-45e3, "45s"], [59.6e3, "1m"], [200e3, "3m 20s"], [600e3, "10m"], [601e3, "10m"], [hour, "1h"], [7500e3, "2h 5m"], [day, "1d"],
    [2 * day + hour, "2d 1h"], [3 * day + hour, "3d"], [21 * day, "21d"],
  ]) assert.equal(time.duration(Number(ms)), want);
  for (const [ms, want] of [[0, "1s"], [90e3, "1m30s"], [36 * hour, "1d12h"], [7 * day, "7d"]]) assert.equal(time.parameter(Number(ms)), want);
  for (const ms of [second, 61 * second, hour, 36 * hour + 61 * second]) assert.equal(time.parseDuration(time.parameter(ms)), ms);
  for (const text of ["", "5", "m", "1.5h", "-5m", "5M"]) assert.ok(Number.isNaN(time.parseDuration(text)), text);
});

test("what is relative is so to the server's clock", () => reader("utc", now, () => {
  const tell = (ahead, took = 0) => clock.observe(new Date(now + ahead).toUTCString(), now - took);
  tell(hour);
  assert.ok(clock.disagrees);
  assert.equal(clock.now(), now + hour + 500); // a Date header has whole seconds, on average half a one is cut off
  assert.equal(parseInstant("-1h"), now + 500);
  tell(-day, 5001); // a slow answer says little
  tell(NaN);
  clock.observe(null, now);
  assert.equal(clock.now(), now + hour + 500);
  tell(4 * second);
  assert.ok(!clock.disagrees);
  assert.equal(clock.now(), now);
  for (const [at, want] of [[now - 90 * second, "1m 30s ago"], [now + 2 * hour, "in 2h"], [now - 999, "now"], [NaN, "–"]]) assert.equal(time.relative(Number(at)), want);
  for (const [text, want] of [["now", true], ["-6h", true], ["now-1d", true], ["6h", false], ["2026-03-04", false], ["-6", false]]) assert.equal(time.isRelative(String(text)), want);
}));
