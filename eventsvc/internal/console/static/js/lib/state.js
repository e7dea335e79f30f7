// Whether a series goes on or is over, judged by its own rhythm, as eventsvc judges it.

import { clock, duration, minute, parseInstant, second, short } from "./time.js";

/** @typedef {"ongoing"|"over"|"once"|"usual"|"unknown"} State */

/**
 * What is known of a series: instants, and the milliseconds that are usual from one occurrence to the next, 0 if that is not known.
 * @typedef {{state: State, first: number, last: number, every: number}} Course
 */

/**
 * The course that an answer has of a change, a group or a series of an object.
 * @param {any} c
 */
export const courseOf = (c) => /** @type {Course} */ ({ state: c.state, first: Date.parse(c.first ?? c.since ?? ""), last: Date.parse(c.last ?? ""), every: (c.every ?? 0) * second });

/**
 * The course of one event, of which only the ends and the count are known.
 * @param {import("./event.js").Row} r @param {string} to when it is looked at, as an address has it @returns {Course}
 */
export function courseOfRow(r, to) {
  const every = r.count > 1 ? (r.time - r.first) / (r.count - 1) : 0;
  const now = Math.min(clock.now(), parseInstant(to) || Infinity);
  return { state: every < second ? "once" : now - r.time > Math.max(3 * every, minute) ? "over" : "ongoing", first: r.first, last: r.time, every };
}

/**
 * The state in words.
 * @param {Course} c @param {number} [now] when it is looked at
 */
export function spoken(c, now = clock.now()) {
  const rhythm = c.every >= second ? duration(c.every) : "";
  if (c.state === "ongoing") return `goes on${rhythm && `, every ${rhythm}${2 * (now - c.last) > 3 * c.every ? `, the last one ${duration(now - c.last)} ago` : ""}`}`;
  if (c.state === "over") return `over for ${duration(Math.max(0, now - c.last))}, since ${short(c.last)}${rhythm && `, had come every ${rhythm}`}`;
  if (c.state === "once") return c.last > c.first ? `last ${duration(Math.max(0, now - c.last))} ago` : "once";
  return "";
}
