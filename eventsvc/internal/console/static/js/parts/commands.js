// Command lines with which other programs ask the question of a view, or show one event.

import { root, url } from "../lib/api.js";
import * as grammar from "../lib/grammar.js";
import { asked } from "../lib/takeaway.js";
import { rfc3339 } from "../lib/time.js";

/** @typedef {{name: string, text: string, lacks: string}} Command `lacks` says which parts of the question it cannot ask */

/**
 * A value within single quotes for a shell.
 * @param {string} s
 */
const quote = (s) => (/^[\w./:=@%+-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

/**
 * A value within double quotes for LogQL.
 * @param {string} s
 */
const logql = (s) => JSON.stringify(s);

/** The fields that are labels in LogQL, and those that are structured metadata. Both have the same names there. */
const labels = new Set(grammar.dimensions), metadata = new Set(["name", "uid"]);

/** @param {import("../app.js").App} app */
const resource = (app) => "events.events.k8s.io".replace("events.k8s.io", app.config.eventsPath.split("/")[2]);

/** @param {string} path */
const curl = (path) => `curl -H "Authorization: Bearer $TOKEN" ${quote(location.origin + root() + path)}`;

/**
 * The terms of the search behind a view. Those of an object find its events.
 * @param {import("../app.js").App} app @returns {grammar.Term[]}
 */
function searchOf(app) {
  const { view, q, kind, name, ns, uid } = app.state;
  const of = view === "changes" ? { namespace: ns } : view !== "object" ? {} : uid ? { uid } : { kind, name, namespace: ns };
  const terms = Object.entries(of).filter(([, value]) => value).map(([field, value]) => ({ field, value, not: false }));
  return view === "object" ? terms : [...grammar.parse(q), ...terms];
}

/**
 * The commands for the question of the view.
 * @param {import("../app.js").App} app @returns {Command[]}
 */
export function commands(app) {
  const { state } = app;
  const terms = searchOf(app);
  const { endpoint, params } = asked(app);
  const path = url("/query/v1/" + endpoint, params);
  const namespace = grammar.namespaceOf(terms)?.value;
  const selectLabels = grammar.labelSelector(terms);
  const selector = grammar.listSelector(terms.filter((t) => t.field !== "namespace" || t.not));
  const kubectl = [`kubectl get ${resource(app)}`, namespace ? `-n ${quote(namespace)}` : "-A",
    selector && `--field-selector ${quote(selector)}`, selectLabels && `-l ${quote(selectLabels)}`].filter(Boolean).join(" ");
  const streams = terms.filter((t) => labels.has(t.field)).map((t) => t.field + (isPattern(t) ? `${t.not ? "!~" : "=~"}${logql("(?i)" + grammar.pattern(grammar.values(t)))}` : `${t.not ? "!=" : "="}${logql(t.value)}`));
  const filters = terms.filter((t) => !t.field).map((t) => `${t.not ? "!~" : "|~"} ${logql("(?i)" + t.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))}`)
    .concat(terms.filter((t) => metadata.has(t.field)).map((t) => `| ${t.field}${t.not ? "!=" : "="}${logql(t.value)}`));
  const unasked = terms.filter((t) => t.field && !labels.has(t.field) && !metadata.has(t.field)).map((t) => (t.field === "()" ? "OR, NOT, parentheses and kind/name" : t.field));
  const derived = endpoint === "groups" ? "the counts" : endpoint === "changes" ? "the comparison" : endpoint === "object" ? "older versions" : "";
  const search = endpoint === "object" ? [] : grammar.parse(state.q).map(grammar.write);
  return [
    { name: "curl", text: curl(path), lacks: "" },
    { name: "eventsvc", text: ["eventsvc query", ...flags(app), ...(search.some((t) => t.startsWith("-")) ? ["--"] : []), ...search.map(quote)].join(" "), lacks: "" },
    { name: "kubectl", text: kubectl, lacks: lacking([derived, "the range, as lists have none", terms.some((t) => !t.field || t.field === "()" || t.field === "note") && "texts", ...["cluster", "owner", "node", "reporter", "pattern"].map((f) => terms.some((t) => t.field === f) && `the ${f}`)]) },
    { name: "kubectl, raw", text: `kubectl get --raw ${quote(path)}`, lacks: "" },
    { name: "LogQL", text: [`{${streams.some((s) => !s.includes("!=")) ? streams.join(", ") : ['type=~".+"', ...streams].join(", ")}}`, ...filters].join(" "), lacks: lacking([derived, unasked.length && unasked.join(", ")]) },
  ];
}

/**
 * The flags of `eventsvc query` besides the search.
 * @param {import("../app.js").App} app
 */
function flags(app) {
  const { state } = app;
  const { from, to, ns } = state;
  const range = [`--from=${quote(from)}`, to !== "now" && `--to=${quote(to)}`];
  const of = ns && `-n ${quote(ns)}`;
  const all = state.view === "changes" ? ["--changes", state.at !== "now" && `--at=${quote(state.at)}`, `--window=${quote(state.window)}`, of]
    : state.view === "object" ? [`--object=${quote(state.uid || `${state.kind}/${state.name}`)}`, !state.uid && of]
      : state.view === "groups" ? [...range, `--group-by=${quote(state.by)}`, state.order && `--order=${quote(state.order)}`] : range;
  return all.filter(Boolean);
}

/**
 * The commands that show one event.
 * @param {import("../app.js").App} app @param {any} e @returns {Command[]}
 */
export function ofEvent(app, e) {
  const { namespace, name } = e.metadata;
  const at = Date.parse(e.series?.lastObservedTime ?? e.deprecatedLastTimestamp ?? e.eventTime ?? e.metadata.creationTimestamp);
  const around = Number.isNaN(at) ? [] : [`--from=${rfc3339(at - 1000)}`, `--to=${rfc3339(at + 2000)}`];
  return [
    { name: "kubectl", text: `kubectl get ${resource(app)} -n ${quote(namespace)} ${quote(name)} -o yaml`, lacks: "" },
    { name: "curl", text: curl(app.api.events(namespace, name)), lacks: "" },
    { name: "eventsvc", text: ["eventsvc query", ...around, "-n", quote(namespace), quote(grammar.write({ field: "event", value: name, not: false }))].join(" "), lacks: "" },
    { name: "LogQL", text: `{namespace=${logql(namespace)}, reason=${logql(e.reason ?? "")}} | json | metadata_name=${logql(name)}`, lacks: "" },
  ];
}

/**
 * Whether a term may fit other texts than its value.
 * @param {grammar.Term} t
 */
const isPattern = (t) => Boolean(t.list) || t.value.includes("*") || /^[a-z]/.test(t.value) && ["type", "reason", "kind"].includes(t.field);

/** @param {(string|false|0|undefined)[]} parts */
const lacking = (parts) => parts.filter(Boolean).join("; ");
