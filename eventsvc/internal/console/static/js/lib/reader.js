// Reads searches: the server says which terms a text has, by which tree an event matches, and what is wrong with it.

import { aborted } from "./api.js";
import { learn, termOf } from "./grammar.js";
import { second } from "./time.js";

/**
 * An expression, as /query/v1/search has it.
 * @typedef {{all?: Tree[], any?: Tree[], not?: Tree, word?: string, note?: boolean, field?: string, label?: string, values?: string[]}} Tree
 */
/** @typedef {{terms: import("./grammar.js").Term[], tree?: Tree, mistake?: string}} Reading */

const most = 50; // texts
const again = 3 * second; // after a failure

export class Reader {
  /** @type {Map<string, {reading?: Reading, asked: Promise<Reading>}>} */
  #texts = new Map();

  /** @param {import("./api.js").Api} api @param {() => void} changed */
  constructor(api, changed) {
    this.api = api;
    this.changed = changed;
  }

  /**
   * What a text means. It fails as the question does, which is asked again some seconds later at the earliest.
   * @param {string} text
   */
  read(text) {
    const key = text.trim();
    const known = this.#texts.get(key);
    if (known) return known.asked;
    const one = { asked: this.#ask(key) };
    this.#texts.set(key, one);
    if (this.#texts.size > most) this.#texts.delete(this.#texts.keys().next().value ?? "");
    one.asked.then((reading) => {
      Object.assign(one, { reading });
      this.changed();
    }, () => setTimeout(() => this.#texts.delete(key), again));
    return one.asked;
  }

  /** @param {string} text @returns {Promise<Reading>} */
  async #ask(text) {
    const { terms, tree, mistake } = await this.api.query("search", { text });
    const reading = { terms: terms.map(termOf), tree, mistake };
    if (!mistake) learn(text, reading.terms);
    return reading;
  }

  /**
   * What a text means as far as that is known already. It is drawn again once it is.
   * @param {string} text
   */
  of(text) {
    const known = this.#texts.get(text.trim());
    if (!known && this.api.session.open) this.read(text).catch(aborted);
    return known?.reading;
  }
}
