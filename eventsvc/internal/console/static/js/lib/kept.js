// What is kept by the browser: over a way to a provider and back by this tab, and the number of its pages.

/**
 * A sign-in that is under way.
 * @typedef {object} Way
 * @property {string} verifier of the code (RFC 7636)
 * @property {string} state that the answer must have
 * @property {string} nonce that the answer must have within what is signed
 * @property {string} issuer that was asked
 * @property {string} back the fragment to go on with
 * @property {number} at when it began, in milliseconds
 * @property {boolean} silent whether the person is not to be asked
 */

const way = "tidings.signin";
const number = "tidings.page";

/**
 * The number of this browser's pages, "" if there is none. It opens nothing by itself.
 * @param {boolean|null} make one if there is none; null forgets it
 */
export function pageNumber(make) {
  try {
    if (make === null) localStorage.removeItem(number);
    else if (make && !localStorage.getItem(number)) localStorage.setItem(number, Array.from(crypto.getRandomValues(new Uint8Array(24)), (b) => b.toString(16).padStart(2, "0")).join(""));
    return localStorage.getItem(number) ?? "";
  } catch {
    return ""; // where the browser keeps nothing, a reload asks again
  }
}

/**
 * Keeps a sign-in that begins. It throws where the browser keeps nothing.
 * @param {Way} w
 */
export function keepWay(w) {
  sessionStorage.setItem(way, JSON.stringify(w));
}

/**
 * The sign-in that was under way, which is forgotten with this.
 * @returns {Way|null}
 */
export function takeWay() {
  try {
    const text = sessionStorage.getItem(way);
    sessionStorage.removeItem(way);
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}
