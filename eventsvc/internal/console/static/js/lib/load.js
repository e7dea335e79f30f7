// A resource: the answer to the question that a view has at present. While another answer
// is on its way the last one stays, so that nothing jumps.

import { aborted, Failure } from "./api.js";

/**
 * The question of a key, which begins with the turn in which it is asked.
 * @param {string} key
 */
const questionOf = (key) => key.replace(/^\W*\d+/, "");

/** @template T */
export class Resource {
  /** @type {T|undefined} the last answer */
  data;
  /** @type {Failure|null} why there is no newer one */
  failure = null;
  loading = false;
  /** When data came, in milliseconds. */
  at = 0;
  #key = "";
  /** The key that data answers. */
  #answered = "";
  /** Whether data is what was counted so far. */
  #part = false;
  /** @type {AbortController|null} */
  #control = null;

  /** @param {() => void} changed is called when an answer or a failure is there */
  constructor(changed) {
    this.changed = changed;
  }

  /** Whether there is going to be a newer answer than data. */
  get stale() {
    return this.loading && this.data !== undefined && !this.#part;
  }

  /** Whether data answers another question than the present one: its numbers must not stand for it. */
  get foreign() {
    return this.stale && questionOf(this.#answered) !== questionOf(this.#key);
  }

  /** Whether data answers the present question as it was asked last, or a part of it does. */
  get current() {
    return this.data !== undefined && this.#answered === this.#key;
  }

  /**
   * Asks, unless this was the last question.
   * @param {string} key of the question
   * @param {(signal: AbortSignal, part: (data: T) => void) => Promise<T>} ask that may have the answer in parts
   */
  want(key, ask) {
    if (key === this.#key) return this;
    this.#key = key;
    this.#part = false;
    this.#control?.abort();
    const control = (this.#control = new AbortController());
    this.loading = true;
    this.#run(control, ask);
    return this;
  }

  /** @param {AbortController} control @param {(signal: AbortSignal, part: (data: T) => void) => Promise<T>} ask */
  async #run(control, ask) {
    const take = (/** @type {T} */ data, /** @type {boolean} */ part) => {
      this.data = data;
      this.at = Date.now();
      this.#answered = this.#key;
      this.#part = part;
      this.failure = null;
    };
    try {
      const data = await ask(control.signal, (part) => {
        if (control.signal.aborted) return;
        take(part, true);
        this.changed();
      });
      if (control.signal.aborted) return;
      take(data, false);
    } catch (err) {
      if (aborted(err) || control.signal.aborted) return;
      this.failure = err instanceof Failure ? err : new Failure("failed", String(err));
      if (this.failure.final) this.data = undefined;
    }
    this.loading = false;
    this.changed();
  }

  /** Forgets the question, so that it is asked again. */
  again() {
    this.#key = "";
  }

  /** Gives up. */
  stop() {
    this.#control?.abort();
    this.#key = "";
    this.loading = false;
  }
}
