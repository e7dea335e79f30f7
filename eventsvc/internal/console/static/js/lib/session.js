// The session: a token in the memory of this tab, and what renews it. Nothing is stored:
// whoever closes the tab is signed out.

import { Failure } from "./api.js";
import { clock, minute, second } from "./time.js";

/** @typedef {{id: string, secret: string, scope: string}} Client */

/** Session holds the token. */
export class Session {
  #token = "";
  /** @type {Client|null} */
  #client = null;
  /** @type {Promise<void>|null} */
  #renewing = null;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #timer;
  /** When the token expires, 0 if it does not say. */
  expires = 0;
  /** Who it is, as the token says. */
  subject = "";
  /** Why there is no session, for the form. */
  reason = "";

  /**
   * @param {string} tokenURL where a client gets tokens, "" if nowhere
   * @param {() => void} changed is called when somebody is signed in or out
   */
  constructor(tokenURL, changed) {
    this.tokenURL = tokenURL;
    this.changed = changed;
  }

  /** Whether there is a token. */
  get open() {
    return this.#token !== "";
  }

  /** Whether the token is renewed without asking. */
  get renews() {
    return this.#client !== null;
  }

  /**
   * The token for a request, renewed if its end is near.
   * @returns {Promise<string>}
   */
  async token() {
    if (this.#client && this.expires && clock.now() > this.expires - 10 * second) await this.#renew().catch(() => {});
    if (!this.#token) throw new Failure("expired", this.reason || "nobody is signed in");
    return this.#token;
  }

  /**
   * Takes a token that was pasted. An error names what is wrong with it.
   * @param {string} text
   */
  useToken(text) {
    const token = text.trim().replace(/^Bearer(\s+|$)/i, "");
    if (!token) throw new Failure("invalid", "There is no token. Paste one.");
    if (/\s/.test(token)) throw new Failure("invalid", "A token has no blanks or line breaks within. Paste it alone.");
    const claims = claimsOf(token);
    if (claims?.exp && claims.exp * second < clock.now()) throw new Failure("invalid", "This token has expired. Get a new one.");
    this.#client = null;
    this.#take(token, claims?.exp ? claims.exp * second : 0);
  }

  /**
   * Signs in as a client, and renews the token from then on.
   * @param {Client} client
   */
  async useClient(client) {
    const before = this.#client;
    this.#client = client;
    try {
      await this.#renew();
    } catch (err) {
      this.#client = before;
      throw err;
    }
  }

  /**
   * Forgets everything.
   * @param {string} [reason]
   */
  end(reason = "") {
    clearTimeout(this.#timer);
    this.#token = "";
    this.#client = null;
    this.reason = reason;
    this.changed();
  }

  /**
   * A token was refused: gets another, if there is a way.
   * @param {string} token @returns {Promise<boolean>} whether there is another one
   */
  async refused(token) {
    if (this.#token && this.#token !== token) return true;
    if (this.#client) {
      try {
        await this.#renew();
        return true;
      } catch (err) {
        this.#lost(err instanceof Error ? err.message : String(err));
        return false;
      }
    }
    this.#lost("The token has expired or is no longer accepted. What you see stays. Sign in to go on.");
    return false;
  }

  /** @param {string} reason */
  #lost(reason) {
    if (!this.#token) return;
    this.#token = "";
    this.reason = reason;
    this.changed();
  }

  /** @param {string} token @param {number} expires */
  #take(token, expires) {
    this.#token = token;
    this.expires = expires;
    const claims = claimsOf(token);
    this.subject = String(claims?.client_id ?? claims?.sub ?? "");
    this.reason = "";
    clearTimeout(this.#timer);
    const left = expires - clock.now();
    // Before its end, by a tenth of its life but at most five minutes.
    if (expires && this.#client) this.#timer = setTimeout(() => this.#renew().catch(() => {}), Math.max(second, left - Math.min(5 * minute, left / 10)));
    this.changed();
  }

  #renew() {
    this.#renewing ??= this.#fetchToken().finally(() => (this.#renewing = null));
    return this.#renewing;
  }

  async #fetchToken() {
    const client = this.#client;
    if (!client) return;
    const form = new URLSearchParams({ grant_type: "client_credentials", client_id: client.id, client_secret: client.secret });
    if (client.scope) form.set("scope", client.scope);
    /** @type {Response} */
    let response;
    try {
      response = await fetch(this.tokenURL, { method: "POST", body: form, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" });
    } catch {
      throw new Failure("unreachable", `${this.tokenURL} cannot be reached from this page. It has to run, and its --cors-origin has to name ${location.origin}.`);
    }
    /** @type {any} */
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) {
      if (answer.error === "invalid_client") throw new Failure("expired", "The client or its secret is not accepted.");
      throw new Failure("failed", answer.error_description ?? answer.error ?? `the token service answered ${response.status}`);
    }
    if (this.#client !== client) return;
    this.#take(String(answer.access_token), answer.expires_in ? clock.now() + answer.expires_in * second : 0);
  }
}

/**
 * The claims of a JWT, as far as they can be read.
 * @param {string} token @returns {any}
 */
function claimsOf(token) {
  const part = token.split(".")[1];
  if (!part) return null;
  try {
    const bytes = Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null; // an opaque token is as good
  }
}
