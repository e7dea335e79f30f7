// Why eventsvc refuses a token that is new: its answer does not say, because that would help to guess tokens.

import { claimsOf } from "./jwt.js";
import { clock, duration, second } from "./time.js";

/** @param {unknown} value */
const isText = (value) => typeof value === "string";

/** @param {unknown} value */
const typeOf = (value) => (Array.isArray(value) ? "a list of other things than texts" : value === Object(value) ? "an object" : `a ${typeof value}`);

/**
 * Says in a sentence why a token of a provider was refused, and what to do.
 * @param {import("./oidc.js").Provider} provider @param {string} token
 */
export function notAccepted(provider, token) {
  return `eventsvc does not accept the ${provider.token} token of ${provider.name}: ${cause(provider, token)}`;
}

/**
 * Says which clock is wrong if a new token is not valid yet or has expired, "" otherwise.
 * @param {string} name of the provider @param {number} skew by which clocks may differ @param {any} claims
 */
export function untimely(name, skew, { exp, iat, nbf }) {
  const now = clock.now();
  const [ahead, behind] = [Math.max(iat, nbf ?? iat) * second - now, now - exp * second];
  const ntp = `Set both clocks by NTP, or raise --clock-skew of eventsvc (${duration(skew)}).`;
  if (ahead > skew) return `it is not valid yet, because the clock of ${name} is ${duration(ahead)} ahead of the one of eventsvc. ${ntp}`;
  if (behind >= skew) return `it has expired ${duration(behind)} ago although it is new, because the clock of ${name} is behind the one of eventsvc. ${ntp}`;
  return "";
}

/** @param {import("./oidc.js").Provider} provider @param {string} token */
function cause({ name, issuer, accepts }, token) {
  const claims = claimsOf(token);
  if (token.length > accepts.bytes) return `it has ${token.length} bytes, and at most ${accepts.bytes} are read. Let ${name} write fewer groups into it, such as only those that are assigned to the application.`;
  if (!claims) return "it cannot be read. The log of eventsvc says what is wrong.";
  const { aud, exp, iat, iss } = claims;
  if (iss !== issuer) return `it is from ${iss}. Write that as issuer of its entry in the issuers file, or let ${name} give tokens of ${issuer}.`;
  const clocks = untimely(name, accepts.clockSkew * second, claims);
  if (clocks) return clocks;
  if (exp - iat > accepts.life) return `it lives ${duration((exp - iat) * second)}, and at most ${duration(accepts.life * second)} are allowed. Let ${name} give shorter tokens, or raise maxTokenLife of its entry in the issuers file.`;
  const odd = accepts.claims?.find((claim) => claims[claim] != null && !isText(claims[claim]) && !(Array.isArray(claims[claim]) && claims[claim].every(isText)));
  if (odd) return `its claim ${odd} is ${typeOf(claims[odd])}. Let ${name} write a text or a list of texts, or take ${odd} out of claims of its entry in the issuers file.`;
  if (accepts.audiences?.length && ![aud].flat().some((a) => accepts.audiences?.includes(a))) return `it is for ${[aud].flat().join(", ") || "nobody"}. Write that into audiences of its entry in the issuers file, or let ${name} give tokens for ${accepts.audiences.join(" or ")}.`;
  return "the log of eventsvc says what is wrong, as refused in the line of the request.";
}
