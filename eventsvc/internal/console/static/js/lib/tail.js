// A tail: the events of a range, and those that arrive after them, by list and watch as
// client-go does it. It goes on by revision after an outage, so that nothing is lost or
// shown twice, and says when it could not.

import { aborted, Failure } from "./api.js";
import { row } from "./event.js";
import { dimensions, pattern } from "./grammar.js";
import { second } from "./time.js";

/** @typedef {import("./event.js").Row} Row @typedef {import("./reader.js").Tree} Tree */
/** @typedef {"starting"|"live"|"waiting"|"stopped"} Phase */

const held = 100_000; // rows that arrived; older ones can be had on the page of events

/**
 * How long to wait before an attempt: half a second, doubled with each that has failed, at most ten.
 * @param {number} failed
 */
export const pause = (failed) => Math.min(10 * second, (second / 2) * 2 ** failed);

/** An attempt that is made again until it succeeds. */
export class Again {
  #failed = 0;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #timer;
  /** @type {(() => void)|null} what is waited for; null: nothing */
  attempt = null;

  /** @param {() => void} attempt which calls later again if it fails, and stop if it does not */
  later(attempt) {
    clearTimeout(this.#timer);
    this.attempt = attempt;
    this.#timer = setTimeout(() => this.now(), pause(this.#failed++));
  }

  now() {
    const { attempt } = this;
    clearTimeout(this.#timer);
    this.attempt = null;
    attempt?.();
  }

  stop() {
    clearTimeout(this.#timer);
    this.attempt = null;
    this.#failed = 0;
  }
}

export class Tail {
  /**
   * What has arrived, the newest last.
   * @type {Row[]}
   */
  arrived = [];
  /** @type {Phase} */
  phase = "starting";
  /**
   * Why it does not go on by itself.
   * @type {Failure|null}
   */
  failure = null;
  /**
   * What is to be known about the past: outages, and what could not be had.
   * @type {string[]}
   */
  notices = [];
  /** Rows that were dropped from memory. */
  dropped = 0;
  /** Occurrences that arrived, ever. */
  received = 0;
  /** When the next attempt is made, while it waits. */
  nextTry = 0;
  /**
   * How far each namespace has come. One may be far behind another.
   * @type {Map<string, string>}
   */
  #revisions = new Map();
  #control = new AbortController();
  /**
   * The row of each event that has arrived.
   * @type {Map<string, Row>}
   */
  #latest = new Map();
  #tries = 0;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #telling;
  /**
   * Arrivals in each of the last seconds.
   * @type {{at: number, n: number}[]}
   */
  #seconds = [];

  /**
   * @param {import("./api.js").Api} api @param {string[]} namespaces to watch, [""] for all
   * @param {Record<string, string>} selectors fieldSelector and labelSelector @param {Test} matches
   * @param {() => void} changed
   */
  constructor(api, namespaces, selectors, matches, changed) {
    this.api = api;
    this.namespaces = namespaces;
    this.selectors = selectors;
    this.matches = matches;
    this.changed = changed;
  }

  /**
   * Begins behind a revision.
   * @param {string} revision
   */
  start(revision) {
    for (const ns of this.namespaces) this.#revisions.set(ns, revision);
    this.#followAll();
  }

  #followAll() {
    for (const ns of this.namespaces) this.#follow(ns);
  }

  stop() {
    this.#control.abort();
    this.phase = "stopped";
  }

  /** Tries at once. Each namespace goes on where it was. */
  retry() {
    this.failure = null;
    this.#control.abort();
    this.#control = new AbortController();
    this.#followAll();
  }

  /** Arrivals a second, over the last five. */
  get rate() {
    const since = Date.now() - 5 * second;
    this.#seconds = this.#seconds.filter((s) => s.at > since);
    return this.#seconds.reduce((n, s) => n + s.n, 0) / 5;
  }

  /**
   * Watches one namespace, again and again.
   * @param {string} namespace
   */
  async #follow(namespace) {
    const signal = this.#control.signal;
    const revision = () => this.#revisions.get(namespace);
    let broken = 0; // since when
    for (;;) {
      try {
        await this.api.watch(this.api.events(namespace), { ...this.selectors, resourceVersion: revision(), allowWatchBookmarks: "true" }, signal, (changes) => this.#take(changes, namespace), () => {
          if (broken) this.notices.push(`Disconnected for ${Math.max(1, Math.round((Date.now() - broken) / second))} s, and resumed at revision ${revision()}. Nothing is missing.`);
          broken = 0;
          this.#tries = 0;
          this.phase = "live";
          this.changed();
        });
        if (signal.aborted) return;
        continue; // the server ends each watch after some minutes
      } catch (err) {
        if (signal.aborted || aborted(err)) return;
        const f = err instanceof Failure ? err : new Failure("failed", String(err));
        if (f.kind === "gone") {
          this.notices.push("The revision at which it stopped is no longer held: what came in between is on the page of events, not here.");
          await this.#newest(namespace, signal).then((newest) => this.#revisions.set(namespace, newest), () => undefined);
        } else if (["expired", "forbidden", "invalid"].includes(f.kind)) {
          this.failure = f;
          this.phase = "stopped";
          this.changed();
          return;
        }
        broken ||= Date.now();
      }
      await this.#wait(signal);
      if (signal.aborted) return;
    }
  }

  /**
   * Waits before the next attempt.
   * @param {AbortSignal} signal
   */
  async #wait(signal) {
    const length = pause(this.#tries++);
    this.phase = "waiting";
    this.nextTry = Date.now() + length;
    this.changed();
    await new Promise((resolve) => {
      setTimeout(resolve, length);
      signal.addEventListener("abort", resolve, { once: true });
      addEventListener("online", resolve, { once: true });
    });
  }

  /** @param {string} namespace @param {AbortSignal} signal @returns {Promise<string>} */
  async #newest(namespace, signal) {
    const list = await this.api.get(this.api.events(namespace), { limit: "1" }, signal);
    return list.metadata.resourceVersion;
  }

  /** @param {{type: string, object: any}[]} changes @param {string} namespace that they are of */
  #take(changes, namespace) {
    let n = 0;
    for (const { type, object } of changes) {
      if (type === "ERROR") throw new Failure(object.code === 410 ? "gone" : object.code === 401 ? "expired" : object.code === 403 ? "forbidden" : "failed", object.message ?? "the watch ended");
      if (object.metadata?.resourceVersion) this.#revisions.set(namespace, object.metadata.resourceVersion);
      if (type === "BOOKMARK" || type === "DELETED") continue;
      const r = row(object);
      if (!this.matches(r, object)) continue;
      this.#put(r);
      n++;
    }
    if (n) {
      this.received += n;
      this.#seconds.push({ at: Date.now(), n });
      this.#soon();
    }
  }

  /** Tells of arrivals ten times a second: faster than that nobody reads. */
  #soon() {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      this.changed();
    }, 100);
  }

  /**
   * Adds a row. A series that goes on takes the place of what was shown of it.
   * @param {Row} r
   */
  #put(r) {
    const before = this.#latest.get(r.id);
    if (before) before.replaced = true;
    this.#latest.set(r.id, r);
    r.arrived = Date.now();
    this.arrived.push(r);
    if (this.arrived.length > held + 5000) this.#trim();
  }

  /**
   * Whether an event has arrived, so that an older row of it is out of date.
   * @param {string} id
   */
  has(id) {
    return this.#latest.has(id);
  }

  /** Forgets rows that were replaced, then the oldest ones. */
  #trim() {
    const kept = this.arrived.filter((r) => !r.replaced);
    const gone = kept.splice(0, Math.max(0, kept.length - held));
    for (const r of gone) this.#latest.delete(r.id);
    this.dropped += gone.length;
    this.arrived = kept;
  }
}

/**
 * What a field compares of an event.
 * @type {Record<string, (r: Row, e: any) => string|undefined>}
 */
const of = {
  type: (r) => r.type, reason: (r) => r.reason, kind: (r) => r.kind, name: (r) => r.name, namespace: (r) => r.namespace, reporter: (r) => r.reporter, cluster: (r) => r.cluster, owner: (r) => r.owner, node: (r) => r.node,
  uid: (r) => r.uid, event: (_, e) => e.metadata.name, path: (_, e) => e.regarding?.fieldPath, "regarding.namespace": (r) => r.ns,
  "regarding.apiVersion": (_, e) => e.regarding?.apiVersion, "regarding.resourceVersion": (_, e) => e.regarding?.resourceVersion,
};

/** @typedef {(r: Row, e: any) => boolean} Test */

/**
 * The test of an expression, null if it cannot be told here: patterns are the server's.
 * @param {Tree} tree @returns {Test|null}
 */
function test({ all, any, not, word, note, field = "", label, values = [] }) {
  const parts = (all ?? any ?? (not ? [not] : [])).map(test);
  const known = /** @type {Test[]} */ (parts.filter(Boolean));
  if (all) return (r, e) => known.every((part) => part(r, e));
  if (any || not) return known.length < parts.length ? null : (r, e) => known.some((part) => part(r, e)) !== Boolean(not);
  if (word !== undefined) return (r) => (note ? [r.note] : [r.note, r.reason, r.name, r.node]).some((text) => text.toLowerCase().includes(word.toLowerCase()));
  const fits = new RegExp(`^(?:${pattern(values)})$`, dimensions.includes(field) ? "is" : "s");
  if (label !== undefined) return (_, e) => Object.hasOwn(e.metadata.labels ?? {}, label) && (values.length === 0 || fits.test(e.metadata.labels[label]));
  return of[field] ? (r, e) => fits.test(of[field](r, e) ?? "") : null;
}

/**
 * Whether an event is what a search asks for, as far as that can be told here.
 * @param {Tree|undefined} tree of the search @returns {Test}
 */
export const matcher = (tree) => (tree && test(tree)) ?? (() => true);
