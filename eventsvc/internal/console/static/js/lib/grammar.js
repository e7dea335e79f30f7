// The terms of a search, as chips and for what has other languages: selectors of kubectl and LogQL. The server reads a text (reader.js);
// here terms are put together and written (reference/search.md of the manual).

/**
 * One term. A field of "" is text that the note, the reason, the name of the object or the node contains; of "()" the value is the text
 * of more than one term. The value of a list is written as in the text: a,"b c".
 * @typedef {{field: string, value: string, not: boolean, list?: string[]}} Term
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
 * What stands for a value that events do not have.
 * @param {string} field
 */
export const lacking = (field) => (field === "cluster" ? "without a name" : "none");

/**
 * Other names of fields that are completed.
 * @type {Record<string, string>}
 */
const also = { ns: "namespace", object: "name", host: "node", source: "reporter", controller: "reporter", message: "note" };

/**
 * The field of a name, "" if it is none.
 * @param {string} name
 */
export const fieldOf = (name) => (Object.hasOwn(also, name) ? also[name] : isField(name) ? name : "");

/** @param {string} name */
export const isField = (name) => Object.hasOwn(fields, name);

/**
 * The terms of texts, as the server has read them or as they were put together here.
 * @type {Map<string, Term[]>}
 */
const known = new Map([["", []]]);
const most = 200; // texts

/**
 * Notes the terms of a text.
 * @param {string} text @param {Term[]} terms
 */
export function learn(text, terms) {
  known.set(text.trim(), terms);
  if (known.size > most) known.delete([...known.keys()][1]);
}

/**
 * The terms of a text, if they are known.
 * @param {string} text
 */
export const termsOf = (text) => known.get(text.trim());

/**
 * The terms of a text. One that nobody has read yet is one term as a whole.
 * @param {string} text @returns {Term[]}
 */
export const parse = (text) => termsOf(text) ?? [{ field: "()", value: text.trim(), not: false }];

/** @param {Term} t */
export const values = (t) => t.list ?? [t.value];

/**
 * A term with its values.
 * @param {{field: string, values: string[], not?: boolean}} part @returns {Term}
 */
export const termOf = ({ field, values: all, not = false }) => (all.length > 1 ? { field, value: all.map(written).join(","), not, list: all } : { field, value: all[0], not });

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
export function writeAll(terms) {
  const text = terms.map(write).join(" ");
  learn(text, terms);
  return text;
}

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
 * Values as a regular expression, for a whole text.
 * @param {string[]} all
 */
export const pattern = (all) => all.map((v) => v.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")).join("|");
