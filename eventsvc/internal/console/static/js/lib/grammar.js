// The grammar of the search box: field:value, -field:value, words, "phrases" and -words.
// The same text is a question to /query/v1, a selector of kubectl and a query of LogQL.

/**
 * One term. A field of "" is text that the note contains.
 * @typedef {{field: string, value: string, not: boolean}} Term
 */

/**
 * The fields: each with its name in the selectors of /query/v1 and in those of lists, ""
 * if lists cannot ask for exactly the same.
 * @type {Record<string, {api: string, list: string, help: string}>}
 */
export const fields = {
  type: { api: "type", list: "type", help: "Normal or Warning" },
  reason: { api: "reason", list: "reason", help: "why it was reported, as BackOff" },
  kind: { api: "kind", list: "regarding.kind", help: "kind of the object, as Pod" },
  name: { api: "regarding.name", list: "regarding.name", help: "name of the object" },
  namespace: { api: "namespace", list: "metadata.namespace", help: "where the event is" },
  reporter: { api: "reporter", list: "", help: "controller that reported it" },
  cluster: { api: "cluster", list: "", help: "cluster it came from" },
  owner: { api: "owner", list: "", help: "controller at the top, as Deployment/web" },
  uid: { api: "regarding.uid", list: "regarding.uid", help: "UID of the object" },
  path: { api: "regarding.fieldPath", list: "regarding.fieldPath", help: "part of the object, as a container" },
  event: { api: "metadata.name", list: "metadata.name", help: "name of the event itself" },
  "label.": { api: "", list: "", help: "a label of the event: label.KEY:VALUE" },
};

/** The fields by which events are counted: the dimensions of /query/v1, and labels of streams in LogQL. */
export const dimensions = ["type", "reason", "kind", "namespace", "reporter", "cluster", "owner"];

/** @param {string} field */
const isField = (field) => field in fields && field !== "label." || /^label\..+/.test(field);

/**
 * Splits a text into terms. What is not finished is read as if it were.
 * @param {string} text @returns {Term[]}
 */
export function parse(text) {
  /** @type {Term[]} */
  const terms = [];
  const pattern = /(-?)(?:([A-Za-z][\w./-]*):)?(?:"((?:[^"\\]|\\.)*)"?|(\S*))/g;
  for (const m of text.matchAll(pattern)) {
    const [all, minus = "", name = "", quoted, word] = m;
    if (all === "") continue;
    const value = quoted !== undefined ? quoted.replace(/\\(.)/g, "$1") : word;
    if (all === "-") terms.push({ field: "", value: all, not: false });
    else if (name && !isField(name)) terms.push({ field: "", value: `${name}:${value}`, not: minus !== "" });
    else if (value !== "" || name) terms.push({ field: name, value, not: minus !== "" });
  }
  return terms;
}

/**
 * Writes one term.
 * @param {Term} t
 */
export function write(t) {
  const plain = t.field ? /^[^\s"\\]+$/.test(t.value) : /^[^\s":\\-][^\s":\\]*$/.test(t.value);
  const value = plain ? t.value : `"${t.value.replace(/["\\]/g, "\\$&")}"`;
  return (t.not ? "-" : "") + (t.field ? t.field + ":" : "") + value;
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
  const rest = parse(text).filter((o) => !same(o, t) && !(t.field && !t.not && o.field === t.field && !o.not));
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
export const listSelector = (terms) => terms.filter((t) => fields[t.field]?.list)
  .map((t) => `${fields[t.field].list}${t.not ? "!=" : "="}${selectorValue(t.value)}`).join(",");

/**
 * The labelSelector of terms.
 * @param {Term[]} terms
 */
export const labelSelector = (terms) => terms.filter((t) => t.field.startsWith("label."))
  .map((t) => `${t.field.slice(6)}${t.not ? "!=" : "="}${t.value}`).join(",");

/**
 * The parameters of /query/v1 that ask for a text.
 * @param {string} text @returns {Record<string, string>}
 */
export function parameters(text) {
  const terms = parse(text);
  /** @type {Record<string, string>} */
  const out = {};
  // A namespace that is named as such is refused if it may not be seen, instead of being empty.
  const namespace = terms.find((t) => t.field === "namespace" && !t.not);
  const selectors = terms.filter((t) => t.field && !t.field.startsWith("label.") && t !== namespace)
    .map((t) => `${fields[t.field].api}${t.not ? "!=" : "="}${selectorValue(t.value)}`);
  const labels = labelSelector(terms);
  const words = terms.filter((t) => !t.field)
    .map((t) => (t.not ? "-" : "") + (/[\s-]/.test(t.value) ? `"${t.value.replaceAll('"', " ")}"` : t.value.replaceAll('"', " ")));
  if (namespace) out.namespace = namespace.value;
  if (selectors.length) out.fieldSelector = selectors.join(",");
  if (labels) out.labelSelector = labels;
  if (words.length) out.text = words.join(" ");
  return out;
}

/**
 * What is wrong with a text, or "".
 * @param {string} text
 */
export function mistake(text) {
  const terms = parse(text);
  const seen = new Map();
  for (const t of terms) {
    if (t.field && t.value === "") return `${t.field}: has no value. Write one behind the colon.`;
    if (t.field && !t.not) {
      const other = seen.get(t.field);
      if (other !== undefined && other !== t.value) return `${t.field} cannot be both ${other} and ${t.value}. Remove one of them.`;
      seen.set(t.field, t.value);
    }
  }
  if ((text.match(/(?<!\\)"/g) ?? []).length % 2) return "A quotation mark has no second one. Close the phrase.";
  return "";
}
