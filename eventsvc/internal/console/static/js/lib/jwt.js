// Reading JSON Web Tokens. Nothing is verified: eventsvc does that.

/**
 * The claims of a JWT, as far as they can be read.
 * @param {string} token @returns {any}
 */
export function claimsOf(token) {
  const part = token.split(".")[1];
  if (!part) return null;
  try {
    const bytes = Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null; // an opaque token is as good
  }
}

/**
 * Bytes in base64url without padding.
 * @param {Uint8Array} bytes
 */
export function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
