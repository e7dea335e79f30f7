// The terms of a search, as chips and for what has other languages: selectors of kubectl and LogQL. The server reads and evaluates
// the same text (reference/search.md of the manual).

/**
 * One term. A field of "" is text that the note, the reason, the name of the object or the node contains. The value of a list is
 * written as in the text: a,"b c".
 * @typedef {{field: string, value: string, not: boolean, list?: boolean}} Term
 */

/**
 * The fields: each with its name in the selectors of lists, "" if these cannot ask for exactly the same.
 * @type {Record<string, {list: string, help: string}>}
 */
export const fields = {
  type: { list: "type", help: "Normal or Warning" },
  reason: { list: "reason", help: "why it was reported, as BackOff" },
  kind: { list: "regarding.kind", help: "kind of the object, as Pod" },
  name: { list: "regarding.name", help: "name of the object" },
  namespace: { list: "metadata.namespace", help: "where the event is" },
  reporter: { list: "", help: "controller that reported it" },
  cluster: { list: "", help: "cluster it came from" },
  owner: { list: "", help: "controller at the top, as Deployment/web" },
  node: { list: "", help: "node on which it happened" },
  note: { list: "", help: "text that the note itself contains" },
  pattern: { list: "", help: "message pattern, as Scaled up to <num>" },
  uid: { list: "regarding.uid", help: "UID of the object" },
  path: { list: "regarding.fieldPath", help: "part of the object, as a container" },
  event: { list: "metadata.name", help: "name of the event itself" },
  "label.": { list: "", help: "a label of the event: label.KEY:VALUE" },
};

/** The fields by which events are counted: the dimensions of /query/v1, and labels of streams in LogQL. */
export const dimensions = ["type", "reason", "kind", "namespace", "reporter", "cluster", "owner", "node"];

/**
 * Other names of fields, and the fields of field selectors, of which the server alone knows the meaning: "()".
 * @type {Record<string, string>}
 */
const also = {
  ns: "namespace", object: "name", host: "node", source: "reporter", controller: "reporter", message: "note", "metadata.name": "event", "metadata.namespace": "namespace",
  reportingcontroller: "reporter", "regarding.kind": "kind", "regarding.name": "name", "regarding.uid": "uid", "regarding.fieldpath": "path",
  "regarding.namespace": "()", "regarding.apiversion": "()", "regarding.resourceversion": "()",
};

/**
 * The field of a name, "" if it is none.
 * @param {string} name
 */
function fieldOf(name) {
  if (/^label\../.test(name)) return name;
  const low = name.toLowerCase();
  if (Object.hasOwn(also, low)) return also[low];
  return isField(low) && low !== "label." ? low : "";
}

/** @param {string} name */
export const isField = (name) => Object.hasOwn(fields, name);

const deepest = 16; // parentheses within each other, as for the server

/** Reads a text as the server does. What is not finished is read as if it were. */
class Reader {
  #at = 0;
  #depth = 0;
  /** Whether AND, OR or NOT is outside of all parentheses. */
  keywords = false;
  /** A field without a value, and what is wrong with a phrase or a group that is not whole. */
  lacking = "";
  open = "";

  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  /**
   * Skips what fits here, and returns it: "" if nothing does.
   * @param {RegExp} pattern sticky
   */
  #skip(pattern) {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  /** Whether the text is over, or the group that is open. */
  #over = () => this.#at >= this.text.length || this.#depth > 0 && this.text[this.#at] === ")";

  /** The terms up to the end of the text or of the group. */
  terms() {
    /** @type {Term[]} */
    const out = [];
    for (;;) {
      this.#skip(/\p{White_Space}+/uy);
      if (this.#over()) return out;
      if (this.#skip(/(AND|OR|NOT)(?=[\p{White_Space}()]|$)/uy)) this.keywords ||= this.#depth === 0;
      else out.push(this.#term());
    }
  }

  /** @returns {Term} */
  #term() {
    const not = this.#skip(/-(?=[^\p{White_Space})])/uy) !== "";
    if (not && this.#skip(/NOT(?=[\p{White_Space}()]|$)/uy)) this.keywords ||= this.#depth === 0;
    if (this.text[this.#at] === "(" && this.#depth < deepest) return this.#group(not);
    const from = this.#at;
    const term = this.#fieldTerm(not);
    if (term) return term;
    this.#at = from;
    const [quoted, word] = [this.text[from] === '"', this.#value('"')];
    if (!quoted && /^[A-Za-z][A-Za-z0-9-]*\/[a-z0-9*][a-z0-9.*-]*$/.test(word)) return { field: "()", value: word, not }; // kind/name or namespace/name
    return { field: "", value: quoted ? word : word.replace(/^\*+(?=[^*])|(?<=[^*])\*+$/g, ""), not };
  }

  /** @param {boolean} not @returns {Term} */
  #group(not) {
    const from = ++this.#at;
    this.#depth++;
    const inner = this.terms();
    this.#depth--;
    if (this.text[this.#at] !== ")") this.open ||= "A parenthesis is not closed. Write a ) for it.";
    else if (!inner.length) this.open ||= "A parenthesis has nothing in it. Write a term there, or \"(\" for the character.";
    return { field: "()", value: this.text.slice(from, this.#at++).trim(), not };
  }

  /**
   * A term on a field or a label, if one is here.
   * @param {boolean} not @returns {Term|undefined}
   */
  #fieldTerm(not) {
    const from = this.#at;
    const name = this.#skip(/[\w./-]*/y);
    const field = name === "label" && this.#skip(/:/y) ? "label." + this.#skip(/[\w./-]*/y) : fieldOf(name);
    if (!field) return;
    if (field.startsWith("label.") && (this.#over() || /\p{White_Space}/u.test(this.text[this.#at]))) return { field: "()", value: "label:" + field.slice(6), not };
    const operator = this.#skip(/[!=]=|!?:|=/y);
    if (!operator) return;
    const begin = this.#at;
    const values = this.values();
    const text = this.text.slice(begin, this.#at);
    if (operator.endsWith(":") && /^(,|$)/.test(text) || text.endsWith(",")) this.lacking = name;
    if (field === "()" || name.toLowerCase() === "object" && values.some((v) => v.includes("/"))) return { field: "()", value: this.text.slice(from, this.#at), not };
    not = not !== operator.startsWith("!");
    return values.length > 1 ? { field, value: values.map(written).join(","), not, list: true } : { field, value: values[0], not };
  }

  /** Values that commas separate. */
  values() {
    const all = [];
    do all.push(this.#value(',"')); while (this.#skip(/,/y));
    return all;
  }

  /**
   * A phrase, or a word up to a blank, the end of the group, or one of some characters.
   * @param {string} until
   */
  #value(until) {
    const { text } = this;
    if (this.#skip(/"/y)) {
      const phrase = this.#skip(/(\\["\\]|[^"])*/y);
      if (!this.#skip(/"/y)) this.open = "A quotation mark has no second one. Close the phrase.";
      return phrase.replace(/\\(["\\])/g, "$1");
    }
    const from = this.#at;
    for (let open = 0; this.#at < text.length && !/\p{White_Space}/u.test(text[this.#at]) && !until.includes(text[this.#at]); this.#at++) {
      if (text[this.#at] === "(") open++;
      else if (text[this.#at] === ")" && --open < 0 && this.#depth > 0) break;
    }
    return text.slice(from, this.#at);
  }
}

/**
 * Splits a text into terms. Of what has OR, NOT or parentheses in it, only the server knows more than that: it is a term of the
 * field "()".
 * @param {string} text @returns {Term[]}
 */
export function parse(text) {
  const reader = new Reader(text);
  const terms = reader.terms();
  return reader.keywords ? [{ field: "()", value: text.trim(), not: false }] : terms;
}

/** @param {Term} t */
export const values = (t) => (t.list ? new Reader(t.value).values() : [t.value]);

/** @param {string} text */
const quoted = (text) => `"${text.replace(/["\\]/g, "\\$&")}"`;

/** @param {string} value */
const written = (value) => (/^[^\p{White_Space}"\\,()]+$/u.test(value) ? value : quoted(value));

/**
 * Writes one term.
 * @param {Term} t
 */
export function write(t) {
  const minus = t.not ? "-" : "";
  if (t.field === "()") return `${minus}(${t.value})`;
  if (t.field) return `${minus}${t.field}:${t.list ? t.value : written(t.value)}`;
  const plain = /^(?!(OR|AND|NOT)$|label\.)[^\p{White_Space}":=\\()*/-][^\p{White_Space}":=\\()*/]*$/u.test(t.value);
  return minus + (plain ? t.value : quoted(t.value));
}

/** @param {Term[]} terms */
export const writeAll = (terms) => terms.map(write).join(" ");

/** @param {Term} a @param {Term} b */
const same = (a, b) => a.field === b.field && a.value === b.value;

/**
 * Adds a term: it takes the place of one that contradicts it.
 * @param {string} text @param {Term} t
 */
export function add(text, t) {
  const rest = parse(text).filter((o) => !same(o, t) && !(t.field && t.field !== "()" && !t.not && o.field === t.field && !o.not));
  return writeAll([...rest, t]);
}

/** @param {string} text @param {Term} t */
export function without(text, t) {
  return writeAll(parse(text).filter((o) => !same(o, t)));
}

/**
 * How a text asks for a value: "with", "without", or "" if it does not.
 * @param {string} text @param {string} field @param {string} value
 */
export function asks(text, field, value) {
  const t = parse(text).find((o) => same(o, { field, value, not: false }));
  return t ? (t.not ? "without" : "with") : "";
}

/**
 * A value within a selector, where comma, equals sign and backslash have a meaning.
 * @param {string} v
 */
const selectorValue = (v) => v.replace(/[\\,=]/g, "\\$&");

/**
 * The fieldSelector of a list for those terms that a list can ask for.
 * @param {Term[]} terms
 */
export const listSelector = (terms) => terms.filter((t) => fields[t.field]?.list && !t.list && !t.value.includes("*"))
  .map((t) => `${fields[t.field].list}${t.not ? "!=" : "="}${selectorValue(t.value)}`).join(",");

/**
 * The labelSelector of terms.
 * @param {Term[]} terms
 */
export const labelSelector = (terms) => terms.filter((t) => t.field.startsWith("label.") && !t.list && !t.value.includes("*"))
  .map((t) => `${t.field.slice(6)}${t.not ? "!=" : "="}${t.value}`).join(",");

/**
 * The parameters of /query/v1 that ask for a text: the server reads the same language.
 * @param {string} text @returns {Record<string, string>}
 */
export const parameters = (text) => (text.trim() ? { search: text.trim() } : {});

/**
 * The term that names one namespace, if there is one.
 * @param {Term[]} terms
 */
export const namespaceOf = (terms) => terms.find((t) => t.field === "namespace" && !t.not && !t.list && !t.value.includes("*"));

/**
 * The terms of which a list or watch answers neither more nor less: its values have upper and lower case.
 * @param {Term[]} terms
 */
export const exact = (terms) => terms.filter((t) => !dimensions.includes(t.field) || t.field === "type" && /^(Warning|Normal)$/.test(t.value));

/**
 * The values of a term as a regular expression, for a whole text.
 * @param {Term} t
 */
export const pattern = (t) => values(t).map((v) => v.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")).join("|");

/**
 * Whether a text is one of the values of a term. Upper and lower case do not matter in dimensions.
 * @param {Term} t @param {string} text
 */
export const fits = (t, text) => new RegExp(`^(?:${pattern(t)})$`, dimensions.includes(t.field) ? "is" : "s").test(text);

/**
 * What is wrong with a text, or "".
 * @param {string} text
 */
export function mistake(text) {
  const reader = new Reader(text);
  const wanted = reader.terms().filter((t) => isField(t.field) && t.field !== "note" && !t.not && !t.value.includes("*"));
  if (reader.open) return reader.open;
  if (reader.lacking) return `${reader.lacking} has no value. Write one behind it, or "" for events without one.`;
  for (const [i, t] of reader.keywords ? [] : wanted.entries()) {
    const other = wanted.slice(0, i).find((o) => o.field === t.field && !values(t).some((v) => fits(o, v)));
    if (other) return `${t.field} cannot be both ${other.value} and ${t.value}. Remove one of them.`;
  }
  return "";
}
