// Pages of rows: what has been loaded so far of an answer that may have any length.

import { aborted, Failure } from "./api.js";

/** @template T */
export class Pager {
  /** @type {T[]} */
  rows = [];
  /**
   * The head of the last page.
   * @type {any}
   */
  head = null;
  /** @type {Failure|null} */
  failure = null;
  loading = false;
  /** Whether there is an answer to the present question. */
  fresh = false;
  #next = "";
  #key = "";
  /** @type {AbortController|null} */
  #control = null;
  /** @type {((next: string, signal: AbortSignal) => Promise<any>)|null} */
  #ask = null;

  /** @param {() => void} changed @param {(answer: any) => T[]} rowsOf */
  constructor(changed, rowsOf) {
    this.changed = changed;
    this.rowsOf = rowsOf;
  }

  /** Whether there are more rows to load. */
  get more() {
    return this.#next !== "";
  }

  /**
   * Asks for the first page, unless this was the last question.
   * @param {string} key @param {(next: string, signal: AbortSignal) => Promise<any>} ask
   */
  want(key, ask) {
    if (key === this.#key) return;
    this.#key = key;
    this.#ask = ask;
    this.fresh = false;
    this.#control?.abort();
    this.#control = new AbortController();
    this.#load("", this.#control);
  }

  /**
   * Takes the first page from an answer that has more than that, and asks for the others.
   * @param {string} key @param {import("./load.js").Resource<any>} first @param {(next: string, signal: AbortSignal) => Promise<any>} ask
   */
  follow(key, first, ask) {
    if (key !== this.#key) {
      this.stop();
      this.#key = key;
      this.#ask = ask;
      this.fresh = false;
      this.#control = new AbortController();
    }
    if (first.current && this.head && !this.head.revision) this.head = first.data; // which was there in part
    if (this.fresh) return;
    this.loading = first.loading;
    this.failure = first.loading ? null : first.failure;
    if (this.failure?.final) this.rows = [];
    if (!first.current || !first.data.items) return;
    this.loading = false;
    this.#take("", first.data);
  }

  /** @param {string} next that was asked for @param {any} answer */
  #take(next, answer) {
    const rows = this.rowsOf(answer);
    if (next) for (const r of rows) this.rows.push(r);
    else this.rows = rows;
    this.#next = answer.continue ?? "";
    this.head = answer;
    this.failure = null;
    this.fresh = true;
  }

  /** Loads the next page, if there is one. */
  next() {
    if (this.loading || !this.more || this.failure || !this.#control) return;
    this.#load(this.#next, this.#control);
  }

  /** Tries again what has failed. */
  again() {
    this.failure = null;
    if (this.fresh) this.next();
    else this.#key = "";
  }

  /** @param {string} next @param {AbortController} control */
  async #load(next, control) {
    this.loading = true;
    try {
      const answer = await /** @type {(next: string, signal: AbortSignal) => Promise<any>} */ (this.#ask)(next, control.signal);
      if (control.signal.aborted) return;
      this.#take(next, answer);
    } catch (err) {
      if (aborted(err) || control.signal.aborted) return;
      this.failure = err instanceof Failure ? err : new Failure("failed", String(err));
      if (this.failure.final) this.rows = [];
    }
    this.loading = false;
    this.changed();
  }

  /** Gives up. */
  stop() {
    this.#control?.abort();
    this.#key = "";
    this.loading = false;
  }
}
