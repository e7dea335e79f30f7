// Who owns an object, and on which node it is, as far as names and events tell. An event
// names its object alone: controllers make the names of what they own from their own.

/** @typedef {{kind: string, name: string, ns: string}} Owner */

const hash = "[bcdf-hj-np-tv-z2-9]"; // the alphabet of generated suffixes: no vowels, no 0, 1, 3

/**
 * The objects that may own one of this kind and name, the nearest first. Those that do not
 * exist have no events.
 * @param {string} kind @param {string} name @param {string} ns @returns {Owner[]}
 */
export function owners(kind, name, ns) {
  /** @type {Owner[]} */
  const out = [];
  const own = (/** @type {string} */ k, /** @type {string|undefined} */ n) => n && out.push({ kind: k, name: n, ns });
  if (kind === "Pod") {
    const set = new RegExp(`^(.+)-(${hash}{6,10})-${hash}{5}$`).exec(name);
    if (set) {
      own("ReplicaSet", `${set[1]}-${set[2]}`);
      own("Deployment", set[1]);
    }
    own("StatefulSet", /^(.+)-\d+$/.exec(name)?.[1]);
    const one = new RegExp(`^(.+)-${hash}{5}$`).exec(name)?.[1];
    own("DaemonSet", set ? undefined : one);
    own("Job", one);
    own("CronJob", one && /^(.+)-\d{8,10}$/.exec(one)?.[1]);
  } else if (kind === "ReplicaSet") {
    own("Deployment", new RegExp(`^(.+)-${hash}{6,10}$`).exec(name)?.[1]);
  } else if (kind === "Job") {
    own("CronJob", /^(.+)-\d{8,10}$/.exec(name)?.[1]);
  } else if (kind === "PersistentVolumeClaim") {
    own("Pod", /^[^-]+-(.+-\d+)$/.exec(name)?.[1]);
  }
  return out;
}

/**
 * The kinds that each kind makes or holds, "*" for any.
 * @type {Record<string, string>}
 */
const made = { Deployment: "ReplicaSet,Pod", ReplicaSet: "Pod", StatefulSet: "Pod,PersistentVolumeClaim", DaemonSet: "Pod", Job: "Pod", CronJob: "Job,Pod", Node: "*", Namespace: "*" };

/**
 * The search for events about what is below an object: by the label of a mirror, or as far as names tell. "" if nothing can be.
 * @param {string} kind @param {string} name @param {string} ns
 */
export function below(kind, name, ns) {
  if (!Object.hasOwn(made, kind) || !name) return "";
  if (kind === "Node") return `node:"${name}" -kind:Node`;
  if (kind === "Namespace") return `namespace:"${name}"`;
  return `${ns && `namespace:"${ns}" `}kind:${made[kind]} (name:"${kind === "StatefulSet" ? "*" : ""}${name}-*" OR owner:"${kind}/${name}")`;
}

/**
 * Whether a row is about something below an object: what the search finds by a part of a name may be another's.
 * @param {import("./event.js").Row} r @param {string} kind @param {string} name
 */
export const isBelow = (r, kind, name) => made[kind] === "*" || r.owner === `${kind}/${name}` || owners(r.kind, r.name, r.ns).some((o) => o.kind === kind && o.name === name || o.kind === "Pod" && owners("Pod", o.name, o.ns).some((p) => p.kind === kind && p.name === name));

/**
 * The node that an event tells its object to be on, or "".
 * @param {any} e
 */
export function nodeOf(e) {
  const reporter = e.reportingController || e.deprecatedSource?.component || "";
  if (reporter === "kubelet") return e.deprecatedSource?.host || e.reportingInstance || "";
  return /^Successfully assigned \S+ to (\S+)$/.exec(e.note ?? "")?.[1] ?? "";
}
