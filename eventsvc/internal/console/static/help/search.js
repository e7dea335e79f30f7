// Search of the manual: which sections, settings, metrics and alerts a text finds, by BM25 over stems and synonyms. A word
// that the manual does not have finds the words that it resembles.

/**
 * One entry of the index.
 * @typedef {{title: string, page: string, url: string, text: string, about?: string}} Entry
 * @typedef {{entry: Entry, title: Set<string>, page: Set<string>, about: Set<string>, counts: Map<string, number>, length: number}} Parsed
 */

/** What is shown at most, and of one page. */
const most = 8, mostOfPage = 3;

/** What people call things, and what the manual calls them. */
const synonyms = new Map(Object.entries({
  agent: "agents mcp", archive: "export backup dump", auth: "token sign policy", authentication: "token sign", authorization: "policy",
  availability: "replicas", backup: "back", brute: "guessing", bruteforce: "guessing", centre: "center", centres: "centers", cert: "certificate", cleanup: "clean limit remove", certs: "certificate",
  changelog: "release notes", compliance: "audit", configuration: "settings config", corrupt: "damaged", corrupted: "damaged", corruption: "damaged", compare: "changes different",
  crash: "recover killed", crashed: "recover killed", dashboard: "grafana console", database: "store", db: "database store",
  account: "client", aks: "managed kubernetes", eks: "managed kubernetes", gke: "managed kubernetes", openshift: "managed kubernetes", elasticsearch: "dump export",
  env: "environment variables", environment: "variables", shutdown: "stops", graceful: "stops", reload: "restart followed", heatmap: "histogram",
  disable: "refuse disabled", disabled: "disable", fluent: "exporter logs", javascript: "library", typescript: "library",
  outbound: "outgoing", shrink: "compact smaller", vacuum: "compact", storm: "rates noisy", watchers: "watches", who: "audit client",
  delete: "remove", deny: "forbidden 403 policy", denied: "forbidden 403 policy", disaster: "lost recover", dr: "lost recover",
  docker: "compose container", down: "away", downgrade: "roll back", duplicated: "duplicates twice", effective: "running", email: "alerts",
  erase: "delete remove", exporter: "kubernetes dump", firewall: "ports connections", forbidden: "403 policy", forgot: "change",
  ha: "replicas", health: "healthy", healthcheck: "healthy probes", helm: "chart", hotkey: "keyboard shortcuts", https: "tls certificate",
  gdpr: "delete", gitlab: "ci", jenkins: "ci", hostname: "name", idp: "identity provider issuer", ingress: "proxy", integrity: "check damaged", isolation: "tenants namespace policy",
  k8s: "kubernetes", kid: "key", keycloak: "provider sign", kube: "kubernetes", latency: "slow", leak: "stolen leaked", leaked: "stolen",
  license: "licence", lockout: "guessing", login: "sign", logon: "sign", logout: "sign", lost: "recover", mail: "alerts", migrate: "move import", missing: "gap", mtls: "certificate client",
  multitenancy: "tenants", noisy: "limits keep drop", notification: "alerts", notify: "alerts", ntp: "clocks", drift: "clocks skew", oauth: "token", oauth2: "token",
  oidc: "openid provider sign", okta: "provider sign", oom: "memory", oomkilled: "memory killed", outage: "away", partition: "network cut", p95: "slow", p99: "slow",
  pagerduty: "alerts pager", password: "secret", passwd: "secret", perf: "slow figures", performance: "slow figures",
  permission: "policy rights allow", permissions: "policy rights allow", pg: "postgresql", postgres: "postgresql", privilege: "policy rights",
  probe: "healthy", prometheus: "metrics", purge: "delete remove retention", quota: "limits", rbac: "policy rights",
  readonly: "read only policy", reschedule: "node moves", rescheduled: "node moves", repair: "damaged recover", restore: "recover backup", retention: "history", revoke: "withdraw stolen",
  rollback: "roll back upgrade", rollout: "deployment", rotate: "change", rotation: "change", size: "sizing", server: "machine", sla: "promises", slack: "alerts chat",
  slow: "bottleneck", ssl: "tls certificate", sso: "sign provider", storage: "disk store", systemd: "linux unit", tenancy: "tenants",
  throttle: "limits 429", throttled: "limits 429", throttling: "limits guessing", timezone: "time zones", ttl: "retention", ui: "console",
  unauthorized: "401 token", undelete: "bring deleted back", undo: "bring deleted back", uninstall: "remove", unreachable: "away",
  upgrade: "update", vm: "linux machine", wal: "log storage", webhook: "alerts", x509: "certificate authority", yaml: "file",
}));

/** Words that say nothing. */
const stop = new Set((
  "a am an and any anybody are as at be because been being but by can could did do does for from had has have he " +
  "her here him his how i if in is it its just let many me might much must my need not of on or our shall she " +
  "should show so some somebody someone such than that the their them then there these they thing things this " +
  "those though to us very want was we were what when where whether which while whose why will with would you " +
  "your"
).split(" "));

/** @param {string} text */
function words(text) {
  return text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((w) => w !== "");
}

/**
 * Cuts the endings of English words, so that rotate, rotated, rotating and rotation are one.
 * @param {string} word
 */
export function stem(word) {
  if (word.length < 4 || /\d/.test(word)) return word;
  let w = word.replace(/ies$/, "y").replace(/([^s])s$/, "$1");
  w = w.replace(/(.{3,})(?:ations?|ating|ated|ate)$/, "$1at").replace(/(.{3,})(?:ing|ed|er|ly|ion)$/, "$1");
  return w.replace(/([^aeiou])\1$/, "$1").replace(/e$/, "");
}

/** @type {WeakMap<Entry[], {parsed: Parsed[], known: Map<string, number>, average: number}>} */
const indexes = new WeakMap();

/** @param {Entry[]} entries */
function index(entries) {
  let found = indexes.get(entries);
  if (found) return found;
  /** @type {Map<string, number>} */
  const known = new Map(); // in how many entries a stem is
  const parsed = entries.map((entry) => {
    const counts = new Map();
    const all = words(`${entry.title} ${entry.page} ${entry.about ?? ""} ${entry.text}`).map(stem);
    for (const w of all) counts.set(w, (counts.get(w) ?? 0) + 1);
    for (const w of counts.keys()) known.set(w, (known.get(w) ?? 0) + 1);
    return { entry, title: new Set(words(entry.title).map(stem)), page: new Set(words(entry.page).map(stem)), about: new Set(words(entry.about ?? "").map(stem)), counts, length: all.length };
  });
  found = { parsed, known, average: parsed.reduce((sum, p) => sum + p.length, 0) / Math.max(1, parsed.length) };
  indexes.set(entries, found);
  return found;
}

/**
 * Returns the stems that a word of a question stands for, with their weights: the word itself, what it begins, its synonyms.
 * @param {string} word @param {Map<string, number>} known
 */
function meanings(word, known) {
  /** @type {Map<string, number>} */
  const all = new Map([[stem(word), 1]]);
  for (const other of words(synonyms.get(word) ?? "")) if (!all.has(stem(other))) all.set(stem(other), 0.7);
  if (word.length > 2 && !known.has(stem(word))) { // still being typed
    for (const w of known.keys()) if (w.startsWith(word) && !all.has(w)) all.set(w, 0.6);
    if (all.size === 1 && word.length > 3) for (const w of known.keys()) if (resembles(w, stem(word))) all.set(w, 0.6);
  }
  return all;
}

/**
 * Says whether two words differ by one letter that is missing, added, replaced or swapped with its neighbour.
 * @param {string} a @param {string} b
 */
function resembles(a, b) {
  if (Math.abs(a.length - b.length) > 1) return false;
  let begin = 0, end = 0;
  const shorter = Math.min(a.length, b.length);
  while (begin < shorter && a[begin] === b[begin]) begin++;
  while (end < shorter - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [x, y] = [a.slice(begin, a.length - end), b.slice(begin, b.length - end)];
  return x.length <= 1 && y.length <= 1 || x.length === 2 && y.length === 2 && x[0] === y[1] && x[1] === y[0];
}

/**
 * Returns the entries that have most of the words, the best first.
 * @param {Entry[]} entries @param {string} question
 * @returns {Entry[]}
 */
export function find(entries, question) {
  const { parsed, known, average } = index(entries);
  const asked = words(question);
  const wanted = (asked.some((w) => !stop.has(w)) ? asked.filter((w) => !stop.has(w)) : asked).slice(0, 16).map((w) => meanings(w, known));
  if (wanted.length === 0) return [];
  const exact = asked.join(" ");
  /** @type {Map<string, number>} */
  const shown = new Map();
  return parsed
    .map((p) => ({ entry: p.entry, score: score(p, wanted, known, parsed.length, average) * (words(p.entry.title).join(" ") === exact ? 4 : 1) }))
    .filter((found) => found.score > 0)
    .sort((a, b) => b.score - a.score)
    .map((found) => found.entry)
    .filter((entry) => {
      const n = (shown.get(entry.page) ?? 0) + 1;
      shown.set(entry.page, n);
      return n <= mostOfPage;
    })
    .slice(0, most);
}

/**
 * @param {Parsed} p @param {Map<string, number>[]} wanted @param {Map<string, number>} known @param {number} all
 * @param {number} average
 */
function score(p, wanted, known, all, average) {
  let sum = 0, has = 0;
  for (const stems of wanted) {
    let best = 0;
    for (const [w, weight] of stems) {
      const n = p.counts.get(w);
      if (!n) continue;
      const rare = Math.log(1 + (all - (known.get(w) ?? 0) + 0.5) / ((known.get(w) ?? 0) + 0.5));
      const often = n / (n + 1.2 * (0.4 + 0.6 * p.length / average));
      best = Math.max(best, weight * rare * (often + (p.title.has(w) ? 1.5 : 0) + (p.page.has(w) ? 1 : 0) + (p.about.has(w) ? 2 : 0)));
    }
    if (best > 0) has++;
    sum += best;
  }
  return sum * (has / wanted.length) ** 2 * (p.entry.title === p.entry.page ? 1.3 : 1); // the page before its parts
}

/**
 * Returns the text around the first word of a question that it has.
 * @param {string} text @param {string} question
 */
export function excerpt(text, question) {
  const lower = text.toLowerCase();
  const places = words(question).filter((w) => !stop.has(w)).map((w) => lower.indexOf(w)).filter((at) => at >= 0);
  const at = Math.max(0, (places[0] ?? 0) - 60);
  const end = at + 180;
  return (at > 0 ? "…" : "") + text.slice(at, end) + (end < text.length ? "…" : "");
}
