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
  uid: { list: "regarding.uid", help: "UID of the object" },
  path: { list: "regarding.fieldPath", help: "part of the object, as a container" },
  event: { list: "metadata.name", help: "name of the event itself" },
  "label.": { list: "", help: "a label of the event: label.KEY:VALUE" },
};

/** The fields by which events are counted: the dimensions of /query/v1, and labels of streams in LogQL. */
export const dimensions = ["type", "reason", "kind", "namespace", "reporter", "cluster", "owner", "node"];

/** @param {string} field */
const isField = (field) => field in fields && field !== "label." || /^label\..+/.test(field);

/**
 * Other names of fields, as the server knows them.
 * @type {Record<string, string>}
 */
const also = {
  ns: "namespace", object: "name", host: "node", source: "reporter", controller: "reporter", message: "note", "metadata.name": "event", "metadata.namespace": "namespace",
  reportingcontroller: "reporter", "regarding.kind": "kind", "regarding.name": "name", "regarding.uid": "uid", "regarding.fieldpath": "path",
};

/** @param {string} name */
const fieldOf = (name) => (name.startsWith("label.") ? name : also[name.toLowerCase()] ?? (isField(name) ? name : isField(name.toLowerCase()) ? name.toLowerCase() : ""));

/**
 * The parts of a text that blanks separate, outside of quotation marks and parentheses.
 * @param {string} text
 */
function parts(text) {
  const out = [];
  let part = "", open = 0, quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "\\" && quoted) part += c + (text[++i] ?? "");
    else if (/\s/.test(c) && !quoted && open <= 0) {
      if (part) out.push(part);
      part = "";
    } else {
      if (c === '"') quoted = !quoted;
      else if (!quoted && c === "(" && (open > 0 || part === "" || part === "-")) open++;
      else if (!quoted && c === ")" && open > 0) open--;
      part += c;
    }
  }
  return part ? [...out, part] : out;
}

/**
 * Splits a text into terms. What is not finished is read as if it were. Of what has OR, NOT or parentheses in it, only the server
 * knows more than that: it is a term of the field "()".
 * @param {string} text @returns {Term[]}
 */
export function parse(text) {
  const all = parts(text);
  if (all.some((p) => /^(OR|AND|NOT)$/.test(p))) return [{ field: "()", value: text.trim(), not: false }];
  return all.flatMap((p) => {
    const group = /^(-?)\(([^]*)\)$/.exec(p);
    return group ? [{ field: "()", value: group[2].trim(), not: group[1] !== "" }] : plain(p);
  });
}

/** @param {string} text @returns {Term[]} */
function plain(text) {
  /** @type {Term[]} */
  const terms = [];
  const pattern = /(-?)(?:([A-Za-z][\w./-]*)(!?=?=|!?:))?((?:"(?:[^"\\]|\\.)*"?|[^\s"]+)(?:(?<=,)"(?:[^"\\]|\\.)*"|(?<="),[^\s"]+)*)?/g;
  for (const m of text.matchAll(pattern)) {
    const [all, minus = "", name = "", operator = "", rest = ""] = m;
    if (all === "") continue;
    const field = name && fieldOf(name);
    const label = name.toLowerCase() === "label" && /^([^!=]+)(!?)=(.*)$/.exec(rest);
    if (all === "-") terms.push({ field: "", value: all, not: false });
    else if (label) terms.push({ field: "label." + label[1], value: unquoted(label[3]), not: (minus !== "") !== (label[2] !== "") });
    else if (/^(label|regarding\.(namespace|apiversion|resourceversion))$/i.test(name) || /^object$/i.test(name) && rest.includes("/")) terms.push({ field: "()", value: all.slice(minus.length), not: minus !== "" });
    else if (name && !field) terms.push({ field: "", value: name + operator + unquoted(rest), not: minus !== "" });
    else if (field && /^[^"]+,|",/.test(rest)) terms.push({ field, value: rest, not: (minus !== "") !== operator.startsWith("!"), list: true });
    else if (rest !== "" || name) terms.push({ field, value: unquoted(rest), not: (minus !== "") !== operator.startsWith("!") });
  }
  return terms;
}

/** @param {string} text */
const unquoted = (text) => (text.startsWith('"') ? text.slice(1).replace(/"$/, "").replace(/\\(["\\])/g, "$1") : text);

/**
 * Writes one term.
 * @param {Term} t
 */
export function write(t) {
  const minus = t.not ? "-" : "";
  if (t.field === "()") return `${minus}(${t.value})`;
  const plain = t.list || (t.field ? /^[^\s"\\,()]+$/.test(t.value) : /^[^\s":=\\()-][^\s":=\\()]*$/.test(t.value) && !/^(OR|AND|NOT)$/.test(t.value));
  const value = plain ? t.value : `"${t.value.replace(/["\\]/g, "\\$&")}"`;
  return minus + (t.field ? t.field + ":" : "") + value;
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
 * The values of a term as a regular expression, for a whole text in upper or lower case.
 * @param {Term} t
 */
export function pattern(t) {
  const values = t.list ? [...t.value.matchAll(/"((?:[^"\\]|\\.)*)"|[^,]+/g)].map((m) => m[1]?.replace(/\\(["\\])/g, "$1") ?? m[0]) : [t.value];
  return values.map((v) => v.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")).join("|");
}

/**
 * Whether a text is one of the values of a term. Upper and lower case do not matter.
 * @param {Term} t @param {string} text
 */
export const fits = (t, text) => new RegExp(`^(?:${pattern(t)})$`, "is").test(text);

/**
 * What is wrong with a text, or "".
 * @param {string} text
 */
export function mistake(text) {
  const terms = parse(text);
  const seen = new Map();
  for (const t of terms) {
    if (t.field && t.value === "" && !/""|=(\s|$)/.test(text)) return `${t.field}: has no value. Write one behind the colon.`;
    if (t.field && t.field !== "()" && !t.not && !t.list && !t.value.includes("*") && !t.field.startsWith("label.")) {
      const other = seen.get(t.field);
      if (other !== undefined && other !== t.value) return `${t.field} cannot be both ${other} and ${t.value}. Remove one of them.`;
      seen.set(t.field, t.value);
    }
  }
  if ((text.match(/(?<!\\)"/g) ?? []).length % 2) return "A quotation mark has no second one. Close the phrase.";
  return "";
}
