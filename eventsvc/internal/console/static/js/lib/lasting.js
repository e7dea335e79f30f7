// What a sign-in consists of, over reloads and new tabs: the server seals it into a cookie that no script can read, and gives it back to
// a page that has the number which is kept here, in the storage of this origin. Neither is worth anything without the other.

import { pageNumber } from "./kept.js";
import { clock } from "./time.js";

/**
 * What is kept of a sign-in.
 * @typedef {object} Kept
 * @property {string} [token] @property {number} [expires]
 * @property {import("./client.js").Credentials} [client]
 * @property {{issuer: string, refresh: string, sub: string, subject: string}} [person]
 */

/** @typedef {{token: string, expires: number}} Got */

/**
 * What tokens come from.
 * @typedef {object} Source
 * @property {boolean} renews whether there is a next token
 * @property {import("./oidc.js").Provider|null} provider where a person signed in
 * @property {string} subject who it is, "" if only the token says so
 * @property {(life: number) => number} lead how long before its end a token is renewed
 * @property {() => Promise<Got>} fetch gets the next token
 * @property {Kept} kept what another page needs to go on
 * @property {(kept: Kept|null) => void} [catchUp] takes what another tab has kept
 * @property {() => void} end
 */

const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("tidings.session") : null;

/** @param {string} method @param {RequestInit} [more] @param {string} [query] */
function ask(method, more = {}, query = "") {
  const number = pageNumber(method === "PUT");
  if (!number) return null;
  return fetch("session/mine" + query, { ...more, method, headers: { ...more.headers, "Tidings-Page": number }, cache: "no-store", credentials: "same-origin", referrerPolicy: "no-referrer" });
}

export class Lasting {
  /** Whether the server did not say what is kept. */
  away = false;
  /** What the last answer said is kept. */
  #on;

  /**
   * @param {boolean} on whether the server keeps sessions
   * @param {() => void} ended is called when somebody has signed out in another tab
   */
  constructor(on, ended) {
    this.#on = on;
    channel?.addEventListener("message", ended);
  }

  /**
   * What is kept, null if nothing is or the server cannot say.
   * @returns {Promise<Kept|null>}
   */
  async resume() {
    const sent = Date.now();
    const response = this.#on ? await ask("POST")?.catch(() => null) : undefined;
    this.away = response === null || [502, 504].includes(response?.status ?? 0); // as a proxy says
    if (response) clock.observe(response.headers.get("Date"), sent);
    return response?.status === 200 ? response.json() : null;
  }

  /**
   * Keeps a sign-in, or what has become of it. It says whether that one has not ended meanwhile.
   * @param {Kept} kept @param {string} token that eventsvc accepts @param {boolean} goesOn
   */
  async keep(kept, token, goesOn) {
    if (!this.#on) return true;
    const headers = { Authorization: "Bearer " + token, "Content-Type": "application/json" };
    for (const content of [kept, { ...kept, token: undefined, expires: undefined }]) { // a long token is not kept: the next page gets another
      const response = await ask("PUT", { headers, body: JSON.stringify(content) }, goesOn ? "?goes-on=true" : "")?.catch(() => null);
      if (response?.status !== 413) return !(goesOn && response?.status === 401);
    }
    return true;
  }

  /**
   * Ends it, here and in all other tabs.
   * @param {boolean} [quietly] other tabs go on as long as they can
   */
  async end(quietly = false) {
    this.away = false;
    if (!quietly) channel?.postMessage("ended");
    if (this.#on) await ask("DELETE", { keepalive: true })?.catch(() => null);
    pageNumber(null);
  }

  /**
   * Does something that only one tab may do at a time.
   * @template T
   * @param {() => Promise<T>} act @returns {Promise<T>}
   */
  alone(act) {
    return navigator.locks ? navigator.locks.request("tidings.session", act) : act();
  }
}
