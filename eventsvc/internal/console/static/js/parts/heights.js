// Where the rows of a table are, each of which may have another height.

/** @typedef {import("../lib/event.js").Row} Row */

export class Heights {
  /** Where each row begins, and the last one ends. */
  #tops = new Float64Array(1);
  /** @type {Row[]|null} */
  #rows = null;
  #key = "";
  #length = 0;

  /**
   * Places rows, unless they are where they were.
   * @param {Row[]} rows @param {string} key of what the heights depend on, besides the rows @param {(r: Row) => number} height
   */
  place(rows, key, height) {
    if (rows === this.#rows && rows.length === this.#length && key === this.#key) return;
    this.#rows = rows;
    this.#key = key;
    this.#length = rows.length;
    if (this.#tops.length <= rows.length) this.#tops = new Float64Array(rows.length * 2 + 1);
    for (let i = 0; i < rows.length; i++) this.#tops[i + 1] = this.#tops[i] + height(rows[i]);
  }

  get total() {
    return this.#tops[this.#length];
  }

  /**
   * Where a row begins; the one behind the last is the end.
   * @param {number} i
   */
  top(i) {
    return this.#tops[Math.max(0, Math.min(i, this.#length))];
  }

  /**
   * The row that is at a height.
   * @param {number} y
   */
  at(y) {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return Math.min(low, Math.max(0, this.#length - 1));
  }
}
