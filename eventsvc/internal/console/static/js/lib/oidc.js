// Signing in at an OpenID provider: the code flow with PKCE as a public client (OpenID Connect Core 1.0 section 3.1, RFC 7636,
// RFC 9207). The way there and back is a page each. What comes of it is in the memory of this tab only.

import { aborted, Failure } from "./api.js";
import { base64url, claimsOf } from "./jwt.js";
import { keepWay, takeWay } from "./kept.js";
import { untimely } from "./refusal.js";
import { clock, duration, minute, second } from "./time.js";

/**
 * A provider, as config.json has it.
 * @typedef {object} Provider
 * @property {string} issuer @property {string} name @property {string} clientID @property {string[]} scopes
 * @property {"access"|"id"} token which token eventsvc gets
 * @property {Record<string, string>|null} parameters
 * @property {string} authorizationEndpoint @property {string} tokenEndpoint
 * @property {string} endSessionEndpoint @property {string} revocationEndpoint
 * @property {boolean} issRequired
 * @property {{bytes: number, audiences: string[]|null, claims: string[]|null, life: number, clockSkew: number}} accepts which tokens eventsvc takes
 * @property {string} unavailable why nobody can sign in there, "" if they can
 */

/** @typedef {{params: URLSearchParams, way: import("./kept.js").Way|null}} Arrival */

const longest = 10 * minute;
const patience = 20 * second;

/** Where providers send people back to: this page. */
export const here = () => new URL(".", location.href).href;

/**
 * Goes to a provider. The page ends with this.
 * @param {Provider} provider @param {boolean} [silent] the person is not to be asked: who is not signed in there comes back
 */
export async function depart(provider, silent = false) {
  if (!crypto.subtle) throw new Failure("failed", `Signing in with ${provider.name} needs a page that came by https: ask whoever runs ${location.host} for its https address.`);
  const [verifier, state, nonce] = [random(), random(), random()];
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
  const to = new URL(provider.authorizationEndpoint);
  const own = {
    response_type: "code", client_id: provider.clientID, redirect_uri: here(), scope: provider.scopes.join(" "), state, nonce,
    code_challenge: challenge, code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries({ ...provider.parameters, ...own, ...(silent && { prompt: "none" }) })) to.searchParams.set(name, value);
  try {
    keepWay({ verifier, state, nonce, issuer: provider.issuer, back: location.hash, at: Date.now(), silent });
  } catch {
    throw new Failure("failed", "This browser lets the page keep nothing while you sign in elsewhere: allow it to store data for this site.");
  }
  if (silent) location.replace(to); // nobody goes back to a page that only led on
  else location.assign(to);
}

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/**
 * What a provider has sent back with the person, taken out of the address and of the tab's storage before anything else is
 * done; null if the page was opened in another way.
 * @returns {Arrival|null}
 */
export function arrive() {
  const way = takeWay();
  const params = new URLSearchParams(location.search);
  if (!params.has("state") && !params.has("code") && !params.has("error")) return null;
  history.replaceState(null, "", location.pathname + (way?.back ?? location.hash));
  return { params, way };
}

/**
 * Checks what came back, and gets the tokens.
 * @param {Arrival} arrival @param {Provider[]} providers
 */
export async function redeem({ params, way }, providers) {
  if (!way || Date.now() - way.at > longest || params.get("state") !== way.state) throw new Failure("failed", "This sign-in was begun in another tab or has taken too long. Try again.");
  const provider = providers.find((p) => p.issuer === way.issuer);
  if (!provider) throw new Failure("failed", `eventsvc no longer lets people sign in at ${way.issuer}. Sign in elsewhere.`);
  if (provider.unavailable) throw new Failure("failed", `${provider.name}: ${provider.unavailable} Then try again.`);
  const iss = params.get("iss");
  if (iss === null ? provider.issRequired : iss !== provider.issuer) throw new Failure("failed", `The answer is not known to be from ${provider.name}, and was not used: iss is ${iss === null ? "missing" : "another issuer"}. Try again. If it is always so, the issuer of its entry is not what it calls itself.`);
  const code = params.get("code");
  if (params.has("error") || !code) throw new Failure("failed", refused(provider, params.get("error") ?? "no code", params.get("error_description")));
  const grant = new Grant(provider);
  return { grant, got: await grant.begin(code, way) };
}

/**
 * What a provider says when it refuses, and what to do.
 * @param {Provider} provider @param {string} error @param {unknown} [description]
 */
function refused(provider, error, description) {
  const said = `${error}${description ? ` (${String(description).slice(0, 500)})` : ""}`;
  const spa = `register ${here()} for a page (Entra: platform Single-page application, not Web)`;
  if (/AADSTS900232[67]/.test(String(description))) return `${provider.name} does not give tokens to pages: ${said}. There, ${spa}.`;
  switch (error) {
    case "access_denied":
      return `${provider.name} did not let you in: ${said}. Ask whoever runs it whether you may use ${provider.clientID}.`;
    case "login_required": case "interaction_required": case "account_selection_required":
      return `Nobody is signed in at ${provider.name}: ${said}. Sign in.`;
    case "consent_required":
      return `${provider.name} wants your consent, or your administrator's: ${said}.`;
    case "invalid_scope":
      return `${provider.name} does not know a scope: ${said}. Correct scopes (${provider.scopes.join(", ")}) in its entry of the issuers file, or allow them for ${provider.clientID} there.`;
    case "invalid_client": case "unauthorized_client":
      return `${provider.name} does not take ${provider.clientID} for a public client: ${said}. There, ${spa}, with PKCE and without a secret (Keycloak: client authentication off; Dex: public: true).`;
    case "server_error": case "temporarily_unavailable":
      return `${provider.name} could not answer: ${said}. Try again.`;
    default:
      return `${provider.name} did not sign you in: ${said}. Try again.`;
  }
}

/** What a person was granted at a provider: a source of a session. */
export class Grant {
  #refresh = "";
  #sub = "";
  /** The last ID token, to sign out there with. */
  hint = "";
  subject = "";

  /** @param {Provider} provider @param {import("./lasting.js").Kept["person"]} [kept] by another page */
  constructor(provider, kept) {
    this.provider = provider;
    if (kept) ({ refresh: this.#refresh, sub: this.#sub, subject: this.subject } = kept);
  }

  /** What another page needs to go on. */
  get kept() {
    return { person: { issuer: this.provider.issuer, refresh: this.#refresh, sub: this.#sub, subject: this.subject } };
  }

  /**
   * Takes the refresh token of another tab, which has used the one of this tab.
   * @param {import("./lasting.js").Kept|null} kept
   */
  catchUp(kept) {
    if (this.#refresh && kept?.person?.issuer === this.provider.issuer && kept.person.refresh) this.#refresh = kept.person.refresh;
  }

  get renews() {
    return this.#refresh !== "";
  }

  /**
   * Before its end, by a minute.
   * @param {number} life
   */
  lead(life) {
    return this.renews ? Math.min(minute, life / 2) : 0;
  }

  /**
   * Turns a code into tokens.
   * @param {string} code @param {import("./kept.js").Way} way
   */
  async begin(code, way) {
    const answer = await this.#ask({ grant_type: "authorization_code", code, redirect_uri: here(), code_verifier: way.verifier });
    return this.#take(answer, way.nonce);
  }

  /** Gets the next token. A refresh token is good for one use at many providers, so this must not run twice at a time. */
  async fetch() {
    if (!this.renews) throw new Failure("expired", `Your sign-in at ${this.provider.name} has ended.`);
    try {
      return this.#take(await this.#ask({ grant_type: "refresh_token", refresh_token: this.#refresh }));
    } catch (err) {
      if (err instanceof Failure && err.final) this.#refresh = "";
      throw err;
    }
  }

  /** Gives the refresh token back, if that can be done, and forgets it. */
  end() {
    const { revocationEndpoint: to, clientID } = this.provider;
    if (to && this.#refresh) {
      const body = new URLSearchParams({ token: this.#refresh, token_type_hint: "refresh_token", client_id: clientID });
      fetch(to, { method: "POST", body, credentials: "omit", referrerPolicy: "no-referrer", keepalive: true }).catch(() => {});
    }
    this.#refresh = "";
  }

  /** Where a person signs out of the provider, "" if nowhere. */
  get exit() {
    if (!this.provider.endSessionEndpoint) return "";
    const to = new URL(this.provider.endSessionEndpoint);
    const own = { id_token_hint: this.hint, client_id: this.provider.clientID, post_logout_redirect_uri: here() };
    for (const [name, value] of Object.entries(own)) if (value) to.searchParams.set(name, value);
    return to.href;
  }

  /**
   * Asks the token endpoint. A request of this form needs no preflight, but the answer can only be read if the endpoint
   * allows this origin.
   * @param {Record<string, string>} form @returns {Promise<any>}
   */
  async #ask(form) {
    const { name, tokenEndpoint, clientID } = this.provider;
    /** @type {Response} */
    let response;
    let text;
    const slow = new AbortController();
    const timer = setTimeout(() => slow.abort(), patience);
    try {
      response = await fetch(tokenEndpoint, {
        method: "POST", body: new URLSearchParams({ ...form, client_id: clientID }), headers: { Accept: "application/json" },
        cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer", redirect: "error", signal: slow.signal,
      });
      text = await response.text();
    } catch (err) {
      if (aborted(err)) throw new Failure("unreachable", `${name} has not answered for ${duration(patience)}. Try again.`);
      throw new Failure("unreachable", `${name}'s token endpoint cannot be reached, or does not let this page read its answer: register ${location.origin} there (Entra: platform Single-page application; Keycloak: Web origins; Dex: web.allowedOrigins; Okta: Trusted origins; Auth0: Allowed Web Origins).`);
    } finally {
      clearTimeout(timer);
    }
    /** @type {any} */
    let answer = null;
    try {
      answer = JSON.parse(text);
    } catch {
      // A page of a proxy: the code has to do.
    }
    if (response.ok && answer) return answer;
    if (!answer?.error) throw new Failure("busy", `${name}'s token endpoint answered ${response.status} without JSON: is ${tokenEndpoint} the right address, and does it run?`);
    const why = refused(this.provider, String(answer.error), answer.error_description);
    throw new Failure(response.status < 500 && response.status !== 429 ? "invalid" : "busy", form.grant_type === "refresh_token" ? `Your sign-in at ${name} has ended: ${answer.error}.` : why);
  }

  /**
   * Takes what the token endpoint has answered.
   * @param {any} answer @param {string} [nonce] of the first answer; later ones need none (OpenID Connect Core 12.2)
   */
  #take(answer, nonce) {
    const { provider } = this;
    const text = (/** @type {unknown} */ v) => (typeof v === "string" ? v : "");
    const id = text(answer.id_token);
    if (id) this.#check(claimsOf(id), nonce);
    const token = provider.token === "id" ? id : text(answer.access_token);
    if (!token && nonce === undefined) throw new Failure("invalid", `Your sign-in at ${provider.name} has ended: it renews no ${provider.token} token.`);
    if (!token) throw new Failure("invalid", `${provider.name} gave no ${provider.token} token. ${provider.token === "id" ? "Its client must be one of OpenID Connect." : "Set token: id in its entry of the issuers file."}`);
    if (token.split(".").length !== 3) throw new Failure("invalid", `${provider.name} gave an opaque ${provider.token} token, which eventsvc cannot read. In its entry of the issuers file set token: id, or ask for a token for this API by scopes or parameters (Zitadel: token type JWT; Auth0: parameters with audience).`);
    this.#refresh = text(answer.refresh_token) || this.#refresh;
    if (id) this.hint = id;
    const claims = claimsOf(token);
    return { token, expires: claims?.exp ? claims.exp * second : answer.expires_in > 0 ? clock.now() + answer.expires_in * second : 0 };
  }

  /**
   * Checks an ID token (OpenID Connect Core 3.1.3.7). Its signature is not needed, as it came from the endpoint itself.
   * @param {any} claims @param {string} [nonce]
   */
  #check(claims, nonce) {
    const { name, issuer, clientID } = this.provider;
    const wrong = claims === null ? "it cannot be read" : claims.iss !== issuer ? `iss is ${claims.iss}, not ${issuer}` : ![claims.aud].flat().includes(clientID) ? `aud is ${claims.aud}, not ${clientID}`
      : !(claims.exp * second > clock.now() - minute) ? untimely(name, minute, claims) || "it has no exp" : nonce !== undefined && claims.nonce !== nonce ? "it is the answer to another sign-in (nonce)"
        : this.#sub && claims.sub !== this.#sub ? "it is somebody else's" : "";
    if (wrong) throw new Failure("invalid", `The ID token of ${name} was not used: ${wrong}${wrong.endsWith(".") ? "" : ". Try again. If it is always so, correct issuer and clientID in its entry of the issuers file."}`);
    this.#sub = claims.sub;
    this.subject = String(claims.preferred_username ?? claims.email ?? claims.name ?? claims.sub ?? "");
  }
}
