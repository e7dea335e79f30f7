// What an Event of events.k8s.io/v1 says, in the terms of this page.

/**
 * A row: what the tables need of an event. Rows are kept in great numbers, so they hold no
 * more than that.
 * @typedef {object} Row
 * @property {string} id namespace/name
 * @property {string} revision
 * @property {number} time of the observation
 * @property {string} type
 * @property {string} reason
 * @property {string} kind
 * @property {string} name
 * @property {string} ns of the object
 * @property {string} uid
 * @property {string} namespace
 * @property {string} note
 * @property {number} count
 * @property {string} reporter
 * @property {string} host
 * @property {string} cluster
 * @property {string} node on which it happened
 * @property {string} owner of the object, as kind/name
 * @property {number} first
 * @property {string} action
 * @property {number} [lines] that the note takes in a table whose note has the width linesAt
 * @property {number} [linesAt]
 * @property {number} [arrived] when it came, of one that is live
 * @property {boolean} [replaced] a later row of the same event has come
 */

/** @param {any} t */
const instant = (t) => (t ? Date.parse(t) : NaN);

/**
 * When an event was observed last: the rule of kubectl's tables. A time before 1970, or more than a day ahead, is not
 * credible: then it is the time of the creation.
 * @param {any} e
 */
export function observed(e) {
  const at = instant(e.series?.lastObservedTime ?? e.deprecatedLastTimestamp ?? e.deprecatedFirstTimestamp ?? e.eventTime);
  return at >= 0 && at <= Date.now() + 86400e3 ? at : instant(e.metadata?.creationTimestamp);
}

/**
 * When it was observed first.
 * @param {any} e
 */
export function firstObserved(e) {
  return instant(e.deprecatedFirstTimestamp ?? e.eventTime ?? e.deprecatedLastTimestamp ?? e.metadata?.creationTimestamp);
}

/**
 * How often it was observed.
 * @param {any} e @returns {number}
 */
export const countOf = (e) => e.series?.count ?? (e.deprecatedCount || 1);

const clusterLabel = "tidings.example/cluster";
const ownerKindLabel = "tidings.example/owner-kind";
const nodeLabel = "tidings.example/node";
const ownerNameLabel = "tidings.example/owner-name";

/** @param {any} e @returns {Row} */
export function row(e) {
  const m = e.metadata ?? {};
  const r = e.regarding ?? {};
  return {
    id: `${m.namespace ?? ""}/${m.name ?? ""}`, revision: m.resourceVersion ?? "", time: observed(e), type: e.type ?? "", reason: e.reason ?? "",
    kind: r.kind ?? "", name: r.name ?? "", ns: r.namespace ?? "", uid: r.uid ?? "", namespace: m.namespace ?? "", note: e.note ?? "",
    count: countOf(e), reporter: e.reportingController || e.deprecatedSource?.component || "", host: e.deprecatedSource?.host || e.reportingInstance || "",
    node: m.labels?.[nodeLabel] || (r.kind === "Node" ? r.name : e.deprecatedSource?.host || e.reportingController === "kubelet" && e.reportingInstance) || "",
    cluster: m.labels?.[clusterLabel] ?? "", owner: m.labels?.[ownerNameLabel] ? `${m.labels[ownerKindLabel] ?? ""}/${m.labels[ownerNameLabel]}` : "", first: firstObserved(e), action: e.action ?? "",
  };
}

/**
 * A count for people: 1, 12, 1,234, 165.9k, 2.1M.
 * @param {number} n
 */
export function human(n) {
  if (n < 10000) return n.toLocaleString("en");
  const [unit, by] = n < 999950 ? ["k", 1e3] : ["M", 1e6];
  return (n / Number(by)).toFixed(1).replace(/\.0$/, "") + unit;
}

/**
 * A count with its noun.
 * @param {number} n @param {string} one @param {string} [many]
 */
export const counted = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/**
 * The class of a type: "warning", "normal" or "other".
 * @param {string} type
 */
export const typeClass = (type) => (type === "Warning" ? "warning" : type === "Normal" ? "normal" : "other");

/**
 * How a series is written: how often, over how long, how fast. "" for what came once.
 * @param {number} count @param {number} first @param {number} last
 */
export function rate(count, first, last) {
  const minutes = (last - first) / 60000;
  if (count < 2 || !(minutes > 0)) return "";
  const per = (count - 1) / minutes;
  if (per >= 1) return `${per < 10 ? per.toFixed(1) : Math.round(per)} a minute`;
  if (per * 60 >= 1) return `${(per * 60).toFixed(1).replace(/\.0$/, "")} an hour`;
  return `${(per * 1440).toFixed(1).replace(/\.0$/, "")} a day`;
}

/**
 * A text whose invisible characters, and characters that change its direction, are shown as marks. The joiner within an emoji
 * belongs to it.
 * @param {string} text
 */
export const clear = (text) => text.replace(/(?!(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d\p{Extended_Pictographic})[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu,
  (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
