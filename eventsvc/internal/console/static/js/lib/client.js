// A client that gets its own tokens, with its id and secret.

import { Failure } from "./api.js";
import { clock, minute, second } from "./time.js";

/** @typedef {{id: string, secret: string, scope: string}} Credentials */

/** Client is a source of a session. */
export class Client {
  renews = true;
  provider = null;
  subject = "";

  /** @param {string} tokenURL @param {Credentials} credentials */
  constructor(tokenURL, credentials) {
    this.tokenURL = tokenURL;
    this.credentials = credentials;
  }

  /**
   * Before its end, by a tenth of its life but at most five minutes.
   * @param {number} life
   */
  lead(life) {
    return Math.min(5 * minute, life / 10);
  }

  async fetch() {
    const { id, secret, scope } = this.credentials;
    const form = new URLSearchParams({ grant_type: "client_credentials", client_id: id, client_secret: secret });
    if (scope) form.set("scope", scope);
    /** @type {Response} */
    let response;
    try {
      response = await fetch(this.tokenURL, { method: "POST", body: form, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" });
    } catch {
      throw new Failure("unreachable", `${this.tokenURL} cannot be reached from this page. It has to run, and its --cors-origin has to name ${location.origin}.`);
    }
    /** @type {any} */
    const answer = await response.json().catch(() => ({}));
    if (!response.ok || !answer.access_token) {
      if (answer.error === "invalid_client") throw new Failure("expired", "The client or its secret is not accepted.");
      throw new Failure("failed", answer.error_description ?? answer.error ?? `the token service answered ${response.status} without a token`);
    }
    return { token: String(answer.access_token), expires: answer.expires_in ? clock.now() + answer.expires_in * second : 0 };
  }

  /** What another page needs to go on. */
  get kept() {
    return { client: this.credentials };
  }

  end() {}
}
