// What the search finds, asked in one pass, so that all of it is of one moment: total, histogram, facets and the first events. A long
// pass tells what it has counted so far.

import { dimensions } from "./grammar.js";
import { Resource } from "./load.js";
import { rfc3339 } from "./time.js";

/**
 * Of what is counted so far, counting says how far that is.
 * @typedef {{range: {from: string, to: string}, step: string, buckets: any[], total: number, facets: any, other: any, distinct: any, counting?: {progress: string},
 *   items?: any[], continue?: string, gaps?: any[], dropped?: any[], historyFrom?: string, namespaces?: string[], clusters?: string[], partial?: boolean}} Found
 */

/** So many values of each facet are asked for. */
export const values = 8;

export class Search {
  /** The length of the histogram's bars. */
  step = "";

  /** @param {import("../app.js").App} app @param {number} limit of the first events */
  constructor(app, limit) {
    this.app = app;
    this.limit = limit;
    /** @type {Resource<Found>} */
    this.answer = new Resource(app.redraw);
  }

  /** @param {string} [order] of the events */
  want(order = "newest") {
    const { app, step, limit } = this;
    const question = { ...app.question(), by: dimensions.join(","), values: String(values), over: "type", step, order, limit: String(limit) };
    const range = app.range();
    this.answer.want(app.key(step, order, limit), (signal, part) => {
      /** @type {Partial<Found>} */
      let first = {};
      return app.query("overview", question, signal, (/** @type {Found} */ so) => {
        if (so.items) first = { items: so.items, continue: so.continue };
        if (so.buckets) part({ ...so, ...first, range: { from: rfc3339(range[0]), to: rfc3339(range[1]) } });
      });
    });
  }
}
