// Search of the manual: which sections, settings, metrics and alerts a text finds, by BM25 over stems and synonyms. A word
// that the manual does not have finds the words that it begins or misspells.

/**
 * One entry of the index.
 * @typedef {{title: string, page: string, url: string, text: string, about?: string}} Entry
 * @typedef {{entry: Entry, title: Set<string>, page: Set<string>, about: Set<string>, counts: Map<string, number>, length: number}} Parsed
 */

/** What is shown at most, and of one page. */
const most = 8, mostOfPage = 3;

/** What the score of a whole page adds to the score of each of its sections: of equal sections, the page about the question wins. */
const share = 0.1;

/** What people call things, and what the manual calls them. */
const synonyms = new Map(Object.entries({
  agent: "agents mcp", archive: "export backup dump", auth: "token sign policy", authentication: "token sign", authorization: "policy",
  availability: "replicas", backup: "back", brute: "guessing", bruteforce: "guessing", centre: "center", centres: "centers", cert: "certificate", cleanup: "clean limit remove", certs: "certificate",
  changelog: "release notes", compliance: "audit", configuration: "settings config", corrupt: "damaged", corrupted: "damaged", corruption: "damaged", compare: "changes different",
  crash: "recover killed", crashed: "recover killed", dashboard: "grafana console", database: "store", db: "database store",
  aad: "entra", ad: "entra", adfs: "provider sign", azure: "entra aks", account: "client", aks: "managed kubernetes", eks: "managed kubernetes", gke: "managed kubernetes", openshift: "managed kubernetes", elasticsearch: "dump export",
  env: "environment variables", environment: "variables", shutdown: "stops", graceful: "stops", reload: "restart followed", heatmap: "histogram",
  disable: "refuse disabled", disabled: "disable", fluent: "exporter logs", javascript: "library", typescript: "library",
  outbound: "outgoing", shrink: "compact smaller", vacuum: "compact", storm: "rates noisy", watchers: "watches", who: "audit client",
  delete: "remove", deny: "forbidden 403 policy", denied: "forbidden 403 policy", disaster: "lost recover", dr: "lost recover",
  docker: "compose container", down: "away", downgrade: "roll back upgrade", duplicated: "duplicates twice", effective: "running", email: "alerts",
  erase: "delete remove", exporter: "kubernetes dump", firewall: "ports connections", forbidden: "403 policy", forgot: "change",
  ha: "replicas", health: "healthy", healthcheck: "healthy probes", helm: "chart", hotkey: "keyboard shortcuts", https: "tls certificate",
  gdpr: "delete", gitlab: "ci", jenkins: "ci", hostname: "name", idp: "identity provider issuer", increase: "enlarge larger", ingress: "proxy", integrity: "check damaged", isolation: "tenants namespace policy",
  k8s: "kubernetes", kick: "block", kid: "key", keycloak: "provider sign", kube: "kubernetes", latency: "slow", leak: "stolen leaked", leaked: "stolen",
  ldap: "provider sign", license: "licence", lockout: "guessing", login: "sign", logon: "sign", logout: "sign", lost: "recover", mail: "alerts", migrate: "move import", missing: "gap", mtls: "certificate client",
  multitenancy: "tenants", noisy: "limits keep drop", notification: "alerts", notify: "alerts", ntp: "clocks", drift: "clocks skew", oauth: "token", oauth2: "token",
  oidc: "openid provider sign", okta: "provider sign", oom: "memory", ordering: "order", guarantee: "promises", oomkilled: "memory killed oomkilling", outage: "away", partition: "network cut", p95: "slow", p99: "slow",
  pagerduty: "alerts pager", password: "secret", passwd: "secret", perf: "slow figures", performance: "slow figures",
  permission: "policy rights allow", permissions: "policy rights allow", pg: "postgresql", postgres: "postgresql", privilege: "policy rights",
  probe: "healthy", prometheus: "metrics", purge: "delete remove retention", quota: "limits", rbac: "policy rights",
  readonly: "read only policy", reschedule: "node moves", rescheduled: "node moves", repair: "damaged recover", restore: "recover backup", retention: "history", revoke: "withdraw stolen",
  rollback: "roll back upgrade", rollout: "deployment", saml: "provider sign", rotate: "change", rotation: "change", size: "sizing", server: "machine", sla: "promises", slack: "alerts chat",
  slow: "bottleneck", ssl: "tls certificate", sso: "sign provider", storage: "disk store", systemd: "linux unit", tenancy: "tenants",
  throttle: "limits 429", throttled: "limits 429", throttling: "limits guessing", theme: "dark mode", timezone: "time zones", ttl: "retention lifetime", ui: "console",
  unauthorized: "401 token", undelete: "bring deleted back", undo: "bring deleted back", uninstall: "remove", unreachable: "away",
  upgrade: "update", vm: "linux machine", wal: "log storage", webhook: "alerts", x509: "certificate authority", yaml: "file",
}));

/** Words that say nothing. */
const stop = new Set((
  "a am an and any anybody are as at be because been being but by can could did do does for from had has have he " +
  "her here him his how i if in is it its just large let many me might much must my need not of on one or our shall " +
  "she should show so some somebody someone such take takes than that the their them then there these they thing things this " +
  "those though to us use very want was we were what when where whether which while whose why will with would you " +
  "your"
).split(" "));

/** @param {string} text */
function words(text) {
  return text.toLowerCase().replace(/['’]s\b/g, "").split(/[^\p{L}\p{N}]+/u).filter((w) => w !== "");
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

/**
 * What is known of all entries: in how many a stem is, and the words as they are written.
 * @typedef {{parsed: Parsed[], average: number, pages: Map<string, Parsed>, averagePage: number, known: Map<string, number>, written: Set<string>}} Index
 */

/** @type {WeakMap<Entry[], Index>} */
const indexes = new WeakMap();

/** @param {Entry[]} entries @returns {Index} */
function index(entries) {
  let found = indexes.get(entries);
  if (found) return found;
  const known = new Map(), written = new Set(), pages = new Map();
  const parsed = entries.map((entry) => {
    const counts = new Map();
    const all = words(`${entry.title} ${entry.page} ${entry.about ?? ""} ${entry.text}`);
    for (const w of all) {
      written.add(w);
      counts.set(stem(w), (counts.get(stem(w)) ?? 0) + 1);
    }
    for (const w of counts.keys()) known.set(w, (known.get(w) ?? 0) + 1);
    return { entry, title: new Set(words(entry.title).map(stem)), page: new Set(words(entry.page).map(stem)), about: new Set(words(entry.about ?? "").map(stem)), counts, length: all.length };
  });
  for (const p of parsed) {
    const page = pages.get(p.entry.page) ?? { ...p, title: new Set(), counts: new Map(), length: 0 };
    for (const [w, n] of p.counts) page.counts.set(w, (page.counts.get(w) ?? 0) + n);
    page.length += p.length;
    pages.set(p.entry.page, page);
  }
  const length = parsed.reduce((sum, p) => sum + p.length, 0);
  found = { parsed, average: length / Math.max(1, parsed.length), pages, averagePage: length / Math.max(1, pages.size), known, written };
  indexes.set(entries, found);
  return found;
}

/**
 * Returns the stems that a word of a question stands for, with their weights: the word itself, its synonyms, and, if the manual
 * does not have it, what it begins or what it misspells.
 * @param {string} word @param {Index} index
 */
function meanings(word, { known, written }) {
  /** @type {Map<string, number>} */
  const all = new Map([[stem(word), 1]]);
  for (const other of words(synonyms.get(word) ?? "")) if (!all.has(stem(other))) all.set(stem(other), 0.7);
  if (all.size > 1 || known.has(stem(word)) || word.length < 3) return all;
  for (const w of known.keys()) if (w.startsWith(word)) all.set(w, 0.6); // still being typed
  for (let mistakes = 1; all.size === 1 && mistakes <= 2 && word.length > 3 * mistakes; mistakes++) {
    for (const w of [...written, ...synonyms.keys()]) {
      if (distance(w, word) !== mistakes) continue;
      for (const other of [w, ...words(synonyms.get(w) ?? "")]) all.set(stem(other), 0.6);
    }
  }
  return all;
}

/**
 * How many letters are missing, added, replaced or swapped with their neighbours between two words; 3 stands for more than two.
 * @param {string} a @param {string} b
 */
function distance(a, b) {
  if (Math.abs(a.length - b.length) > 2) return 3;
  /** @type {number[]} */
  let before = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return Math.min(row[b.length], 3);
}

/**
 * Returns the entries that have most of the words, the best first.
 * @param {Entry[]} entries @param {string} question
 * @returns {Entry[]}
 */
export function find(entries, question) {
  const all = index(entries);
  const { parsed, pages, known } = all;
  const asked = words(question);
  const wanted = (asked.some((w) => !stop.has(w)) ? asked.filter((w) => !stop.has(w)) : asked).slice(0, 16).map((w) => meanings(w, all));
  if (wanted.length === 0) return [];
  const exact = asked.join(" ");
  /** @type {Map<string, number>} */
  const shown = new Map();
  const whole = new Map([...pages].map(([page, p]) => [page, share * score(p, wanted, known, parsed.length, all.averagePage)]));
  return parsed
    .map((p) => ({ entry: p.entry, score: score(p, wanted, known, parsed.length, all.average) * (words(p.entry.title).join(" ") === exact ? 4 : 1) }))
    .filter((found) => found.score > 0)
    .map((found) => ({ ...found, score: found.score + (whole.get(found.entry.page) ?? 0) }))
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
