// Times: how they are read, written and compared. An instant is a number of milliseconds
// since 1970 UTC.

export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** @type {Record<string, number>} */
const units = { s: second, m: minute, h: hour, d: day, w: 7 * day };

/**
 * How the person wants to read times. The page sets it once it knows.
 * @type {{zone: "utc"|"local"}}
 */
export const reading = { zone: "local" };

/**
 * Clock tells the time of the server: that of this machine may be wrong.
 */
class Clock {
  offset = 0; // of the server's clock from ours

  /**
   * Takes the time of an answer from its Date header, which has whole seconds.
   * @param {string|null} date @param {number} sent when the request was sent, by our clock
   */
  observe(date, sent) {
    const at = date ? Date.parse(date) : NaN;
    if (Number.isNaN(at)) return;
    const now = Date.now();
    if (now - sent > 5 * second) return; // a slow answer says little
    this.offset = at + 500 - (now + sent) / 2;
  }

  /** The server's time. */
  now() {
    return Date.now() + (this.disagrees ? this.offset : 0);
  }

  /** Whether the clocks differ so much that a person would be misled. */
  get disagrees() {
    return Math.abs(this.offset) > 5 * second;
  }
}

export const clock = new Clock();

/**
 * Whether a text is relative to now, as -6h or now.
 * @param {string} text
 */
export function isRelative(text) {
  return /^(now|(now)?[-+](\d+[smhdw])+)$/.test(text);
}

/**
 * Reads a duration as 90s, 1h30m or 7d; NaN if it is none.
 * @param {string} text
 */
export function parseDuration(text) {
  if (!/^(\d+[smhdw])+$/.test(text)) return NaN;
  let sum = 0;
  for (const [, n, unit] of text.matchAll(/(\d+)([smhdw])/g)) sum += Number(n) * units[unit];
  return sum;
}

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/**
 * Writes dates as 29.11.2026 or 29.11. and times as 2:30pm or 2 pm as the page writes them.
 * @param {string} text
 */
const numeric = (text) => text.replace(/\b(\d{1,2})\.(\d{1,2})\.(?:(\d{4})(?!\d)|(?= |$))/g, (_, day, month, year) => `${year ? year + "-" : ""}${month.padStart(2, "0")}-${day.padStart(2, "0")}`)
  .replace(/\b(\d{1,2})((?::\d{2}){0,2}) ?([ap])\.?m\b\.?/gi, (all, hour, rest, half) => (+hour < 1 || +hour > 12 ? all : `${two((+hour % 12) + (/p/i.test(half) ? 12 : 0))}${rest || ":00"}`));

/**
 * Writes what stands for a date as one with a time: a day by its name, a time of today, a date without its year, which is the last one
 * of that date, a Unix time in seconds or milliseconds; and an age, as 3d, 3m 20s ago or last 3 days, relative to now.
 * @param {string} given @returns {string}
 */
export function dated(given) {
  const text = numeric(given).trim().replace(/^last (?=\d)/i, "").replace(/^last (?=[a-z])/i, "1 ").replace(/^[a-z]+day (?=\d+-\d)/i, "")
    .replace(/(\d+) ?([smhdw])(?:ec(?:ond)?|in(?:ute)?|our|ay|eek)s?\b/gi, (_, n, unit) => n + unit.toLowerCase());
  if (/ UTC$/.test(text)) return dated(text.slice(0, -4)) + "Z";
  if (text.endsWith(` ${zoneName()}`)) return dated(text.slice(0, -zoneName().length));
  if (/^\d{10}$|^\d{13}$/.test(text)) return new Date(Number(text.padEnd(13, "0"))).toISOString();
  const age = /^(?:(in )|-)?((?:\d+[smhdw] ?)+?)( ago)?$/.exec(text);
  if (age && !(age[1] && age[3])) return (age[1] ? "+" : "-") + age[2].replaceAll(" ", "");
  if (/^\d\d-\d\d( |$)/.test(text)) {
    const year = Number(absolute(clock.now()).slice(0, 4));
    const [now, last] = [year, year - 1].map((y) => `${y}-${text}`);
    return parseInstant(now) <= clock.now() + day ? now : last;
  }
  const m = /^(?:(today|yesterday|[a-z]{3,6}day)(?: |$))?(\d{1,2}:\d{2}(?::\d{2})?)?$/i.exec(text);
  if (!m || text === "") return text;
  const name = (m[1] ?? "today").toLowerCase();
  const ago = ["today", "yesterday"].includes(name) ? Number(name === "yesterday") : [0, 1, 2, 3, 4, 5, 6].find((days) => weekday(clock.now() - days * day).toLowerCase() === name);
  if (ago === undefined) return text;
  const date = absolute(clock.now() - ago * day).slice(0, 10);
  return `${date} ${(m[2] ?? "00:00").padStart(5, "0").replace(/^(\d):/, "0$1:")}`;
}

/**
 * Reads both ends of a range that stand in one text, as 02:00-03:00, yesterday 02:00 to 03:00 or 11-20 14:02 – 15:00; null if they do not.
 * A time behind the first end is one of the same day.
 * @param {string} text @returns {[number, number]|null}
 */
export function parseRange(text) {
  const given = numeric(text.trim());
  const both = /^(.+?)(?: to | – |\s*–\s*)(.+)$/.exec(given) ?? /^(.*?\d{1,2}:\d{2}(?::\d{2})?)\s*-\s*(\d{1,2}:\d{2}(?::\d{2})?)$/.exec(given);
  if (!both) return null;
  const from = parseInstant(both[1]);
  const time = /^\d{1,2}:\d{2}(:\d{2})?$/.test(both[2]);
  const to = parseInstant(time ? `${absolute(from).slice(0, 10)} ${both[2].padStart(both[2].includes(":", 3) ? 8 : 5, "0")}` : both[2]);
  return Number.isNaN(from) || Number.isNaN(to) ? null : [from, to];
}

/**
 * Reads an instant in every form in which the page writes one, and some more: relative, RFC 3339, a date with or without a year or a
 * time in the zone the person reads times in, 14:00 of today, yesterday 14:00, an age, a Unix time. NaN if it is none.
 * @param {string} text @returns {number}
 */
export function parseInstant(text) {
  const t = dated(text).replace(/ (\d:)/, " 0$1");
  if (isRelative(t)) {
    const m = /^(?:now)?([-+])(.+)$/.exec(t);
    return clock.now() + (m ? (m[1] === "-" ? -1 : 1) * parseDuration(m[2]) : 0);
  }
  const m = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(\.\d+)?)?)?(Z|[-+]\d{2}:\d{2})?$/.exec(t);
  if (!m) return NaN;
  if (m[8]) return Date.parse(t.replace(" ", "T"));
  const parts = /** @type {const} */ ([+m[1], +m[2] - 1, +m[3], +(m[4] ?? 0), +(m[5] ?? 0), +(m[6] ?? 0)]);
  const at = reading.zone === "utc" ? Date.UTC(...parts) : new Date(...parts).getTime();
  return absolute(at).slice(0, 10) === t.slice(0, 10) ? at : NaN; // there is no 31 February, and no 25:00
}

/** @param {number} n */
const two = (n) => String(n).padStart(2, "0");

/** @param {number} at @returns {[number, number, number, number, number, number]} */
function fieldsOf(at) {
  const d = new Date(at);
  return reading.zone === "utc"
    ? [d.getUTCFullYear(), d.getUTCMonth() + 1, d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()]
    : [d.getFullYear(), d.getMonth() + 1, d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds()];
}

/** The name of the zone, as it stands behind times: CET, or UTC+5:30 where it has none that people use. */
export function zoneName() {
  if (reading.zone === "utc") return "UTC";
  const named = (/** @type {string} */ locale) => new Intl.DateTimeFormat(locale, { timeZoneName: "short" }).formatToParts().find((p) => p.type === "timeZoneName")?.value ?? "";
  return ["en-US", "en-GB", "en-AU"].map(named).find((name) => !/^GMT[+-]/.test(name)) ?? named("en-GB").replace("GMT", "UTC").replace("-", "−");
}

/**
 * As 2026-03-04 12:00:05.
 * @param {number} at
 */
export function absolute(at) {
  if (Number.isNaN(at)) return "–";
  const [y, mo, d, h, mi, s] = fieldsOf(at);
  return `${y}-${two(mo)}-${two(d)} ${two(h)}:${two(mi)}:${two(s)}`;
}

/**
 * The day of the week.
 * @param {number} at
 */
export const weekday = (at) => weekdays[new Date(absolute(at).slice(0, 10)).getUTCDay()];

/**
 * Date and minute, without the year if it is this one.
 * @param {number} at
 */
export function short(at) {
  const text = absolute(at);
  return text.slice(text.slice(0, 4) === absolute(clock.now()).slice(0, 4) ? 5 : 0, 16);
}

/**
 * Date and second without the year if it is this one; else date and minute.
 * @param {number} at
 */
export function dense(at) {
  const text = absolute(at);
  return text.slice(0, 4) === absolute(clock.now()).slice(0, 4) ? text.slice(5) : text.slice(0, 16);
}

/**
 * The time of today, or date and minute.
 * @param {number} at
 */
export function brief(at) {
  const text = absolute(at);
  return text.slice(0, 10) === absolute(clock.now()).slice(0, 10) ? text.slice(11) : short(at);
}

/** @type {Record<string, string>} */
const names = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

/**
 * A duration in words if it is in one unit, as 15 minutes for 15m, or for -15m.
 * @param {string} text as parseDuration reads it, or relative to now
 */
export function spelled(text) {
  const length = text.replace(/^(now)?-/, "");
  const m = /^(\d+)([smhdw])$/.exec(length);
  return m ? `${m[1]} ${names[m[2]]}${m[1] === "1" ? "" : "s"}` : length;
}

/**
 * RFC 3339 in UTC, whole seconds.
 * @param {number} at
 */
export function rfc3339(at) {
  return new Date(at).toISOString().slice(0, 19) + "Z";
}

/**
 * A duration in at most two units: 45s, 3m 20s, 2h 5m, 4d.
 * @param {number} ms
 */
export function duration(ms) {
  const s = Math.round(Math.abs(ms) / second);
  if (s < 60) return `${s}s`;
  if (s < 600 && s % 60) return `${Math.floor(s / 60)}m ${s % 60}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  const m = Math.floor(s / 60);
  if (m < 24 * 60) return m % 60 ? `${Math.floor(m / 60)}h ${m % 60}m` : `${m / 60}h`;
  const hours = Math.floor(m / 60);
  if (hours < 72 && hours % 24) return `${Math.floor(hours / 24)}d ${hours % 24}h`;
  return `${Math.floor(hours / 24)}d`;
}

/**
 * How long ago, or in how long.
 * @param {number} at
 */
export function relative(at) {
  if (Number.isNaN(at)) return "–";
  const ago = clock.now() - at;
  if (Math.abs(ago) < second) return "now";
  return ago > 0 ? `${duration(ago)} ago` : `in ${duration(ago)}`;
}

/**
 * A duration as the API takes it: 90s, 5m, 1h30m.
 * @param {number} ms
 */
export function parameter(ms) {
  let s = Math.max(1, Math.round(ms / second));
  let text = "";
  for (const [unit, n] of /** @type {[string, number][]} */ ([["d", 86400], ["h", 3600], ["m", 60], ["s", 1]])) {
    if (s >= n) {
      text += Math.floor(s / n) + unit;
      s %= n;
    }
  }
  return text;
}
