// Requests to eventsvc: /query/v1 and the ordinary API, with the session's token.

import { clock, minute } from "./time.js";

/**
 * Why a request was not answered:
 * - "expired": there is no token, or it is no longer valid
 * - "forbidden": the token does not allow it
 * - "invalid": the question is wrong; `field` names the parameter
 * - "missing": what was asked for is not there
 * - "gone": the revision is no longer held
 * - "busy": too much is asked; it may be tried again
 * - "unreachable": there is no connection
 * - "failed": the server could not answer
 * - "foreign": something else has answered, such as a proxy with its sign-in page
 * @typedef {"expired"|"forbidden"|"invalid"|"missing"|"gone"|"busy"|"unreachable"|"failed"|"foreign"} Kind
 */

/** A request that was not answered as hoped. */
export class Failure extends Error {
  /** @param {Kind} kind @param {string} message @param {string} [field] */
  constructor(kind, message, field = "") {
    super(message);
    this.kind = kind;
    this.field = field;
  }

  /** Whether the same question will not be answered later either: an older answer must not stand for it. */
  get final() {
    return this.kind === "forbidden" || this.kind === "invalid" || this.kind === "missing" || this.kind === "gone";
  }
}

/** What a proxy has before the paths of eventsvc, such as "/events", which it removes; mostly nothing. */
export const root = () => location.pathname.slice(0, location.pathname.lastIndexOf("/console/"));

/** @type {Record<number, Kind>} */
const kinds = { 400: "invalid", 401: "expired", 403: "forbidden", 404: "missing", 410: "gone", 422: "invalid", 429: "busy", 503: "busy" };

/**
 * @param {number} code @param {any} [status] of Kubernetes: what a proxy answers is none, and the code has to do
 */
function failure(code, status) {
  const cause = status?.details?.causes?.[0];
  const field = cause?.field ?? "";
  const message = (field === "search" && cause.message && `Your search, ${cause.message}.`) || (status?.message ?? `the server answered ${code}`); // people type no query parameters
  return new Failure(kinds[code] ?? "failed", message, field);
}

/**
 * Whether an error is a request that was given up.
 * @param {unknown} err
 */
export const aborted = (err) => err instanceof DOMException && err.name === "AbortError";

/**
 * Asks, and gives up if there is no answer for a minute.
 * @template T
 * @param {AbortSignal|undefined} signal @param {(signal: AbortSignal) => Promise<T>} ask
 */
async function timed(signal, ask) {
  const control = new AbortController();
  const end = () => control.abort(signal?.reason);
  if (signal?.aborted) end();
  signal?.addEventListener("abort", end, { once: true });
  const timer = setTimeout(() => control.abort(new Failure("busy", "there was no answer for a minute")), minute);
  try {
    return await ask(control.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/**
 * Reads lines of JSON until they end.
 * @param {Response} response @param {(lines: any[]) => void} take gets what arrived together
 */
async function lines(response, take) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (err) {
      if (aborted(err) || err instanceof Failure) throw err;
      throw new Failure("unreachable", "the connection broke");
    }
    if (piece.done) return;
    const whole = (rest + decoder.decode(piece.value, { stream: true })).split("\n");
    rest = whole.pop() ?? "";
    if (whole.length) take(whole.filter((l) => l !== "").map((l) => JSON.parse(l)));
  }
}

/** Api asks eventsvc. */
export class Api {
  /**
   * @param {import("./session.js").Session} session
   * @param {string} eventsPath of the group and version of Events
   */
  constructor(session, eventsPath) {
    this.session = session;
    this.eventsPath = eventsPath;
  }

  /**
   * @param {string} path @param {Record<string, string|string[]|undefined>} [params]
   * @param {AbortSignal} [signal] @returns {Promise<any>}
   */
  get(path, params = {}, signal) {
    return timed(signal, async (s) => (await this.fetch(url(path, params), s)).json());
  }

  /**
   * Asks /query/v1.
   * @param {string} endpoint @param {Record<string, string|string[]|undefined>} params @param {AbortSignal} [signal]
   */
  query(endpoint, params, signal) {
    return this.get("/query/v1/" + endpoint, params, signal);
  }

  /**
   * Asks /query/v1 for an answer that is told while it is counted.
   * @param {string} endpoint @param {Record<string, string|string[]|undefined>} params @param {AbortSignal} signal
   * @param {(part: any) => void} take gets what is counted so far
   */
  stream(endpoint, params, signal, take) {
    return timed(signal, async (s) => {
      /** @type {any} */
      let last;
      await lines(await this.fetch(url("/query/v1/" + endpoint, params), s, "application/x-ndjson"), (parts) => {
        for (last of parts) if (last.counting) take(last);
      });
      if (last?.error) throw failure(last.error.code, last.error);
      if (!last || last.counting) throw new Failure("unreachable", "the connection broke");
      return last;
    });
  }

  /**
   * The path of Events, of one namespace if there is one.
   * @param {string} [namespace] @param {string} [name]
   */
  events(namespace, name) {
    const within = namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
    return `${this.eventsPath}${within}/events${name ? "/" + encodeURIComponent(name) : ""}`;
  }

  /**
   * Reads a watch until it ends. Each line is one change.
   * @param {string} path @param {Record<string, string|undefined>} params @param {AbortSignal} signal
   * @param {(changes: {type: string, object: any}[]) => void} take gets what arrived together
   * @param {() => void} [opened] is called once it is open
   */
  async watch(path, params, signal, take, opened) {
    const response = await this.fetch(url(path, { ...params, watch: "true" }), signal);
    opened?.();
    await lines(response, take);
  }

  /**
   * Sends a GET. A token that is refused is renewed once, if it can be.
   * @param {string} address @param {AbortSignal} [signal] @param {string} [accept] the form of the answer @returns {Promise<Response>}
   */
  async fetch(address, signal, accept = "application/json") {
    for (let again = false; ; again = true) {
      const token = await this.session.token();
      const sent = Date.now();
      /** @type {Response} */
      let response;
      try {
        response = await fetch(root() + address, { headers: { Accept: accept, Authorization: "Bearer " + token }, signal, cache: "no-store", credentials: "omit" });
      } catch (err) {
        if (aborted(err) || err instanceof Failure) throw err;
        throw new Failure("unreachable", "the server cannot be reached");
      }
      clock.observe(response.headers.get("Date"), sent);
      if (response.ok && response.headers.get("Content-Type")?.startsWith("text/html")) throw new Failure("foreign", "a web page came in the place of events");
      if (response.status !== 401) this.session.accepted(token);
      if (response.ok) return response;
      const f = failure(response.status, await response.json().catch(() => null));
      if (f.kind !== "expired") throw f;
      if (!(await this.session.refused(token)) || again) throw f;
    }
  }
}

/** @param {string} path @param {Record<string, string|string[]|undefined>} params */
export function url(path, params) {
  const query = new URLSearchParams();
  for (const name in params) {
    const value = params[name];
    for (const v of Array.isArray(value) ? value : [value]) if (v !== undefined && v !== "") query.append(name, v);
  }
  const text = query.toString();
  return text ? `${path}${path.includes("?") ? "&" : "?"}${text}` : path;
}
