// The application: what all views share, and which of them is shown.

import * as address from "./lib/address.js";
import { Api, Failure } from "./lib/api.js";
import { configuration } from "./lib/config.js";
import * as grammar from "./lib/grammar.js";
import { Resource } from "./lib/load.js";
import { Reader } from "./lib/reader.js";
import { forgetRecent, remember } from "./lib/searches.js";
import { Session } from "./lib/session.js";
import { clock, isRelative, parseInstant, rfc3339, second } from "./lib/time.js";

/**
 * A view: one of the tabs.
 * @typedef {object} View
 * @property {() => import("./lib/dom.js").Child} draw
 * @property {() => void} [leave] is called when another view is shown
 * @property {(key: string) => boolean} [key] handles a key, and says whether it has
 */

/** @typedef {{version: string, eventsPath: string, tokenURL: string, issuer: string, sessions: boolean, signIn: import("./lib/oidc.js").Provider[]}} Config */
/** @typedef {import("./lib/address.js").State} State */

export class App {
  /** @type {State} */
  state = address.read(location.hash);
  /** When the configuration was asked for. */
  configured = Date.now();
  /** Counts up when the person wants everything anew. */
  turn = 0;
  /** The row of changes whose place is explained, -1 for none. */
  explained = -1;
  /**
   * The kinds of failure that the page shows so far while it is drawn: each is shown once.
   * @type {Set<string>}
   */
  told = new Set();
  /** Whether the facets are open on a screen that has no room for them beside the rest. */
  facets = false;
  /** The newest revision of a row that was drawn before the question was repeated: rows after it are new. "": none is. */
  since = "";
  #newest = 0n;
  /** What the page says for a moment, and reads to who cannot see it. */
  said = "";
  /**
   * The last answer's head: revision, historyFrom, gaps.
   * @type {any}
   */
  head = null;
  /**
   * The last answers, the oldest first: who looks at the same in another view does not wait for it again.
   * @type {Map<string, {answer: any, at: number}>}
   */
  #recent = new Map();
  /**
   * The namespaces that may be seen, once somebody was refused one; null if none are.
   * @type {string[]|null|undefined}
   */
  #seen;
  /**
   * The question that was asked last, and the first answer to it; null if that failed.
   * @type {{key: string, at: number, head: Promise<any>}}
   */
  #first = { key: "", at: 0, head: Promise.resolve(null) };
  #open = false; #scheduled = false;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #silence;
  /** @type {() => void} */
  #draw;

  /** @param {Config} config @param {() => void} draw */
  constructor(config, draw) {
    this.config = config;
    this.#draw = draw;
    this.session = new Session(config, () => this.#signed());
    this.api = new Api(this.session, config.eventsPath);
    this.reader = new Reader(this.api, this.redraw);
    /**
     * The clusters that are mirrored, for the notices of every view and for the overview.
     * @type {Resource<{items: import("./parts/clusters.js").Row[]}>}
     */
    this.clusters = new Resource(this.redraw);
    addEventListener("hashchange", () => {
      this.state = address.read(location.hash);
      this.since = "";
      this.redraw();
    });
  }

  #signed() {
    const { open } = this.session;
    if (open && !this.#open) { // what was refused is asked again
      this.turn++;
      this.#seen = undefined;
    }
    this.#open = open; // a token that is renewed changes nothing
    this.redraw();
  }

  /**
   * Draws the page before the next frame.
   * @param {unknown} [now] true: before this one
   */
  redraw = (now) => {
    if (now === true) return this.#draw();
    if (this.#scheduled) return;
    this.#scheduled = true;
    // A page that is hidden gets no frames, and has to be right when it is shown again.
    const draw = () => {
      if (!this.#scheduled) return;
      this.#scheduled = false;
      this.#draw();
    };
    if (document.hidden) setTimeout(draw, 200);
    else requestAnimationFrame(draw);
  };

  /**
   * Changes the state, and with it the address.
   * @param {Partial<State>} change @param {boolean} [replace] the entry of the history, for what is no step of its own
   */
  go(change, replace = false) {
    const next = { ...this.state, ...change };
    const to = address.write(next);
    if (to === address.write(this.state)) return;
    if (next.q !== this.state.q) remember(next.q);
    if (address.write({ ...next, event: "" }) !== address.write({ ...this.state, event: "" })) {
      this.since = "";
      this.explained = -1;
    }
    this.state = next;
    if (replace) history.replaceState(null, "", to);
    else history.pushState(null, "", to);
    this.redraw();
  }

  /**
   * The address of a state.
   * @param {Partial<State>} change
   */
  href(change) {
    return address.write({ ...this.state, ...change });
  }

  /** Asks again where people sign in: the issuers file may have changed, or a provider has come back. */
  async reconfigure() {
    const next = await configuration(true).catch(() => null); // the page is as good as it was
    if (next) this.config.signIn = next.signIn;
    this.configured = Date.now();
    this.redraw();
  }

  /** Asks everything again. */
  refresh() {
    this.turn++;
    this.since = String(this.#newest || (this.head?.revision ?? "")); // that of the head may not be drawn yet
    this.redraw();
  }

  /**
   * Whether a row has come since the same was asked before.
   * @param {string} revision
   */
  isNew(revision) {
    if (revision !== "" && BigInt(revision) > this.#newest) this.#newest = BigInt(revision);
    return this.since !== "" && revision !== "" && BigInt(revision) > BigInt(this.since);
  }

  /**
   * Says something for a moment.
   * @param {string} text
   */
  say(text) {
    this.said = text;
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => {
      this.said = "";
      this.redraw();
    }, 6000);
    this.redraw();
  }

  /**
   * Adds a term to the search, or removes one.
   * @param {import("./lib/grammar.js").Term} term
   */
  add(term) {
    this.go({ q: grammar.add(this.state.q, term) });
  }

  /** @param {import("./lib/grammar.js").Term} term */
  remove(term) {
    this.go({ q: grammar.without(this.state.q, term) });
  }

  /**
   * The parameters of the present question.
   * @returns {Record<string, string>}
   */
  question() {
    const { q, from, to, revision } = this.state;
    return { ...grammar.parameters(q), from, to, revision };
  }

  /**
   * What tells this question from another one, to be asked at this turn.
   * @param {...unknown} more
   */
  key(...more) {
    return JSON.stringify([this.turn, this.question(), ...more]);
  }

  /**
   * The range in instants.
   * @returns {[number, number]}
   */
  range() {
    return [parseInstant(this.state.from), parseInstant(this.state.to)];
  }

  /**
   * Asks /query/v1 and keeps the head of the answer.
   * @param {string} endpoint @param {Record<string, string|string[]|undefined>} params @param {AbortSignal} signal
   * @param {(part: any) => void} [part] gets what is counted so far, of an answer that tells it
   */
  async query(endpoint, params, signal, part) {
    if (!this.session.open) throw new Failure("expired", "Sign in to see events.");
    const key = JSON.stringify([this.turn, endpoint, params]);
    const known = this.#recent.get(key);
    let answer = known && Date.now() - known.at < 10 * second ? known.answer : null;
    if (!answer) {
      answer = await this.#together(endpoint, params, signal, part);
      this.#recent.set(key, { answer, at: Date.now() });
      if (this.#recent.size > 16) this.#recent.delete(this.#recent.keys().next().value ?? "");
    }
    if (answer.revision) this.head = answer;
    return answer;
  }

  /**
   * Asks about the state and the range that the first answer to the same question had, so that the numbers of a page are of one moment.
   * @param {string} endpoint @param {Record<string, string|string[]|undefined>} params @param {AbortSignal} signal
   * @param {(part: any) => void} [part] @returns {Promise<any>}
   */
  async #together(endpoint, params, signal, part) {
    const { from, to, revision } = this.state;
    const ask = (/** @type {typeof params} */ p) => (part ? this.api.stream(endpoint, p, signal, part) : this.api.query(endpoint, p, signal));
    const ranged = params.from === from && params.to === to || params.at === to;
    if (revision || params.continue || !ranged) return ask(params);
    const key = this.key();
    if (this.#first.key !== key || Date.now() - this.#first.at > 10 * second) {
      const answer = ask(params);
      if (!params.at) this.#first = { key, at: Date.now(), head: answer.then((head) => head, () => null) };
      return answer;
    }
    const head = await this.#first.head;
    if (!head?.range) return ask(params);
    const same = { ...params, revision: head.revision, ...(params.at ? { at: head.range.to } : { from: head.range.from, to: head.range.to }) };
    return ask(same).catch((err) => {
      if (err instanceof Failure && ["gone", "busy", "invalid"].includes(err.kind)) return ask(params); // a replica that is not as far yet
      throw err;
    });
  }

  /**
   * The namespaces that may be seen. They are asked for when this is first called, and drawn when they are there.
   * @returns {string[]}
   */
  seen() {
    if (this.#seen === undefined && this.session.open) {
      this.#seen = null;
      this.api.query("facets", { by: "type", limit: "1" }).then((answer) => {
        this.#seen = answer.namespaces ?? null;
        this.redraw();
      }, () => {}); // who may see nothing was told so
    }
    return this.#seen ?? [];
  }

  /** The link that shows the same later: absolute times, and the revision. */
  permalink() {
    const { from, to, revision } = this.state;
    const fixed = (/** @type {string} */ t) => (isRelative(t) ? rfc3339(parseInstant(t)) : t);
    const covered = this.head?.range;
    return location.origin + location.pathname + this.href({
      from: isRelative(from) && covered ? covered.from : fixed(from), to: isRelative(to) && covered ? covered.to : fixed(to),
      revision: revision || this.head?.revision || "",
    });
  }

  /**
   * Changes the range.
   * @param {number} from @param {number} to
   */
  zoom(from, to) {
    const begin = Math.floor(from / 1000) * 1000;
    this.go({ from: rfc3339(begin), to: rfc3339(Math.max(Math.ceil(to / 1000) * 1000, begin + 1000)), revision: this.state.revision });
  }
}
