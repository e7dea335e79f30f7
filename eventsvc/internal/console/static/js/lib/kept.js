// What this tab keeps over a way to a provider and back: in its storage, which ends with the tab.

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
const last = "tidings.sso";

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

/** The issuer where the person was last signed in, "" if that has ended. */
export function lastIssuer() {
  try {
    return sessionStorage.getItem(last) ?? "";
  } catch {
    return "";
  }
}

/**
 * Remembers an issuer for the next time that this page is loaded; "" forgets it.
 * @param {string} issuer
 */
export function rememberIssuer(issuer) {
  try {
    if (issuer) sessionStorage.setItem(last, issuer);
    else sessionStorage.removeItem(last);
  } catch {
    // A reload asks again, then.
  }
}
