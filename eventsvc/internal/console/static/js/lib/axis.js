// Axes: where their ticks are, and how they are labelled.

import { absolute, day, hour, minute, parseDuration, reading, second } from "./time.js";

const steps = [second, 5 * second, 15 * second, 30 * second, minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour,
  day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day, 364 * day];

/**
 * The ticks of a time axis, at round times of the zone that is read in.
 * @param {number} from @param {number} to @param {number} most
 * @returns {{at: number, label: string}[]}
 */
export function timeTicks(from, to, most) {
  const step = steps.find((s) => (to - from) / s <= most) ?? steps[steps.length - 1];
  const offset = reading.zone === "utc" ? 0 : -new Date(from).getTimezoneOffset() * minute;
  const ticks = [];
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) {
    const text = absolute(at);
    const midnight = text.slice(11) === "00:00:00";
    ticks.push({ at, label: step >= day || midnight ? text.slice(5, 10) : step >= minute ? text.slice(11, 16) : text.slice(11) });
  }
  return ticks;
}

/**
 * The smallest round number that is not below n, as the top of an axis.
 * @param {number} n
 */
export function roundUp(n) {
  if (n <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(n));
  return power * ((power >= 100 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : [1, 2, 3, 4, 5, 6, 8]).find((m) => n <= m * power) ?? 10);
}

/**
 * The step that gives about as many bars as there is room for, as the API takes it.
 * @param {number} range @param {number} most
 */
export function stepFor(range, most) {
  for (const s of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800]) {
    if (range / (s * second) <= most) return s >= 86400 ? `${s / 86400}d` : s >= 3600 ? `${s / 3600}h` : s >= 60 ? `${s / 60}m` : `${s}s`;
  }
  return `${Math.ceil(range / (7 * day) / most) * 7}d`;
}

/**
 * The counts of a histogram, empty buckets too.
 * @param {any} data @param {(bucket: any) => number} count
 */
export function spread(data, count) {
  const step = parseDuration(data.step);
  const from = Math.floor(Date.parse(data.range.from) / step) * step;
  const values = new Array(Math.max(1, Math.ceil((Date.parse(data.range.to) - from) / step))).fill(0);
  for (const b of data.buckets) values[Math.round((Date.parse(b.start) - from) / step)] = count(b);
  return values;
}
