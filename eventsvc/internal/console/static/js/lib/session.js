// The session: a token in the memory of this tab, and what renews it. What lasts over a reload is in lasting.js.

import { Failure } from "./api.js";
import { Client } from "./client.js";
import { claimsOf } from "./jwt.js";
import { Lasting } from "./lasting.js";
import { takeWay } from "./kept.js";
import { depart, Grant, redeem } from "./oidc.js";
import { notAccepted } from "./refusal.js";
import { clock, day, second } from "./time.js";

/** @typedef {import("./oidc.js").Provider} Provider @typedef {import("./lasting.js").Got} Got @typedef {import("./lasting.js").Source} Source */

/** Session holds the token. */
export class Session {
  #token = "";
  /** @type {Source|null} */
  #source = null;
  /** @type {Promise<void>|null} */
  #renewing = null;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #timer;
  /** How long the token lives from when it came. */
  #life = 0;
  /** Whether eventsvc has taken this token for that of somebody, and whether it has taken any of its source. */
  #accepted = false;
  #seen = false;
  /** When the token expires, 0 if it does not say. */
  expires = 0;
  /** Who it is, as the token says. */
  subject = "";
  /** Why there is no session, for the form. */
  reason = "";
  /** The name of the provider that is being asked, "" if none is. */
  busy = "";
  /**
   * Where the person was signed in until now, and can be again; what they see stays.
   * @type {Provider|null}
   */
  ended = null;
  /**
   * What the person has signed out of here, but not there.
   * @type {Grant|null}
   */
  left = null;

  /**
   * @param {{tokenURL: string, sessions: boolean}} config where a client gets tokens, "" if nowhere; whether the server keeps sessions
   * @param {() => void} changed is called when somebody is signed in or out
   */
  constructor({ tokenURL, sessions }, changed) {
    this.tokenURL = tokenURL;
    this.changed = changed;
    this.lasting = new Lasting(sessions, () => this.open && this.#lost("You have signed out in another tab."));
  }

  /** Whether there is a token. */
  get open() {
    return this.#token !== "";
  }

  /** Whether the token is renewed without asking. */
  get renews() {
    return this.#source?.renews ?? false;
  }

  /**
   * The token for a request, renewed if its end is near.
   * @returns {Promise<string>}
   */
  async token() {
    if (this.#source && this.expires && clock.now() > this.expires - 10 * second) await this.#renew().catch(() => {});
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
    this.#use(null, { token, expires: claims?.exp ? claims.exp * second : 0 });
  }

  /**
   * Signs in as a client, and renews the token from then on.
   * @param {import("./client.js").Credentials} credentials
   */
  async useClient(credentials) {
    const client = new Client(this.tokenURL, credentials);
    this.#use(client, await client.fetch());
  }

  /**
   * Sends the person to a provider, with which the page ends.
   * @param {Provider} provider @param {boolean} [silent]
   */
  async useProvider(provider, silent) {
    await this.#with(provider.name, () => depart(provider, silent));
  }

  /**
   * Goes on with a person that a provider has sent back.
   * @param {import("./oidc.js").Arrival} arrival @param {Provider[]} providers
   */
  async arrived(arrival, providers) {
    const { way } = arrival;
    await this.#with(providers.find((p) => p.issuer === way?.issuer)?.name ?? "", async () => {
      const { grant, got } = await redeem(arrival, providers);
      if (got.expires && clock.now() - got.expires >= grant.provider.accepts.clockSkew * second) throw new Failure("invalid", notAccepted(grant.provider, got.token));
      this.#use(grant, got);
    });
    this.busy = "";
    if (way?.silent && !this.open) { // it was worth a try, and this is the only time
      this.reason = "";
      this.lasting.end(true);
    }
    this.changed();
  }

  /**
   * After a reload or in a new tab: goes on with what was kept. If that gives no token, the provider is asked, once, whether the person
   * is still signed in there.
   * @param {Provider[]} providers
   */
  async resume(providers) {
    const kept = await this.lasting.resume();
    const at = (/** @type {string|undefined} */ issuer) => providers.find((p) => p.issuer === issuer && !p.unavailable);
    const person = at(kept?.person?.issuer);
    const source = kept?.client ? new Client(this.tokenURL, kept.client) : person ? new Grant(person, kept?.person) : null;
    if (kept?.token && (!kept.expires || kept.expires > clock.now() + 10 * second)) return this.#use(source, { token: kept.token, expires: kept.expires ?? 0 }, true);
    if (source?.renews) {
      this.#source = source;
      return this.#with(person?.name ?? "", () => this.#renew()).finally(() => { this.busy = ""; this.changed(); });
    }
    if (person) await this.useProvider(person, true);
  }

  /** The person has come back with the browser's button, and not from a provider. */
  stay() {
    takeWay();
    this.busy = "";
    this.changed();
  }

  /** @param {string} name @param {() => Promise<void>} act */
  async #with(name, act) {
    this.busy = name;
    this.reason = "";
    this.changed();
    try {
      await act();
    } catch (err) {
      this.busy = "";
      this.reason = err instanceof Error ? err.message : String(err);
      this.ended = null;
      this.changed();
    }
  }

  /** Signs out: forgets everything. */
  end() {
    const source = this.#source;
    source?.end();
    this.lasting.end();
    this.#forget();
    this.reason = "";
    this.ended = null;
    this.left = source instanceof Grant && source.exit ? source : null;
    this.changed();
  }

  #forget() {
    clearTimeout(this.#timer);
    this.#token = "";
    this.#source = null;
  }

  /**
   * Eventsvc has taken a token for that of somebody.
   * @param {string} token
   */
  accepted(token) {
    if (token === this.#token) this.#accepted = this.#seen = true;
  }

  /**
   * A token was refused: gets another, if there is a way.
   * @param {string} token @returns {Promise<boolean>} whether there is another one
   */
  async refused(token) {
    if (this.#token && this.#token !== token) return true;
    const provider = this.#source?.provider;
    if (provider && !this.#accepted && !(this.expires && clock.now() >= this.expires)) {
      this.#seen = false; // it is not enough to sign in again
      this.#lost(notAccepted(provider, token));
      return false;
    }
    if (this.#source?.renews) {
      try {
        await this.#renew();
        return true;
      } catch (err) {
        this.#lost(err instanceof Error ? err.message : String(err));
        return false;
      }
    }
    this.#lost(`The token has expired or is no longer accepted.${this.#seen ? " What you see stays." : ""} Sign in to go on.`);
    return false;
  }

  /** @param {string} reason */
  #lost(reason) {
    if (!this.#token) return;
    this.ended = (this.#seen && this.#source?.provider) || null;
    this.#forget();
    this.reason = reason;
    this.changed();
  }

  /**
   * Begins to use what came from a source; null is what was pasted.
   * @param {Source|null} source @param {Got} got @param {boolean} [kept] whether it came from what was kept
   */
  #use(source, got, kept = false) {
    this.#source = source;
    this.#seen = false;
    this.ended = this.left = null;
    this.#take(got);
    if (!kept) this.#keep(false);
  }

  /** @param {boolean} goesOn whether it was kept before */
  async #keep(goesOn) {
    const source = this.#source;
    const going = await this.lasting.keep(source?.provider ? source.kept : { ...source?.kept, token: this.#token, expires: this.expires }, this.#token, goesOn);
    if (!going && source === this.#source) this.#lost("You have signed out in another tab.");
  }

  /** @param {Got} got */
  #take({ token, expires }) {
    this.#token = token;
    this.#accepted = false;
    this.expires = expires;
    this.#life = expires - clock.now();
    const claims = claimsOf(token);
    this.subject = this.#source?.subject || String(claims?.client_id ?? claims?.sub ?? "");
    this.reason = "";
    this.#await();
    this.changed();
  }

  /** Waits for when the token is to be renewed, or ends. */
  #await() {
    clearTimeout(this.#timer);
    const source = this.#source;
    if (!source || !this.expires) return;
    const wait = this.expires - source.lead(this.#life) - clock.now();
    // A browser takes times of many days for none at all.
    this.#timer = setTimeout(() => this.#due(), Math.min(Math.max(second, wait), day));
  }

  async #due() {
    const source = this.#source;
    if (!source) return;
    const due = clock.now() >= this.expires - source.lead(this.#life);
    if (due && !(await this.#renew().then(() => true, () => false))) {
      // What failed is tried again, to the end of the token. After that, the next request tries.
      const left = this.expires - clock.now();
      if (source === this.#source && left > 0) this.#timer = setTimeout(() => this.#due(), Math.min(left, 10 * second));
    } else if (source === this.#source) this.#await();
  }

  #renew() {
    this.#renewing ??= this.#next().finally(() => (this.#renewing = null));
    return this.#renewing;
  }

  async #next() {
    const source = this.#source;
    if (!source) return;
    try {
      await this.lasting.alone(async () => {
        if (source.catchUp) source.catchUp(await this.lasting.resume());
        const got = await source.fetch();
        if (source !== this.#source) return;
        this.#take(got);
        await this.#keep(true);
      });
    } catch (err) {
      if (source === this.#source && source.provider && clock.now() >= this.expires) this.#lost(err instanceof Error ? err.message : String(err));
      throw err;
    }
  }
}
