// Search of the manual: which sections, settings, metrics and alerts a text finds, by BM25 over stems, pairs of stems,
// and synonyms. A word that the manual does not have finds the words that it joins, begins or misspells.

/**
 * One entry of the index.
 * @typedef {{title: string, page: string, url: string, text: string, about?: string}} Entry
 * @typedef {{entry: Entry, title: Set<string>, page: Set<string>, about: Set<string>, counts: Map<string, number>, length: number}} Parsed
 */

/** What is shown at most, and of one page. */
const most = 8, mostOfPage = 3;

/** What the score of a whole page adds to the score of each of its sections: of equal sections, the page about the question wins. */
const share = 0.1;

/** What two words weigh that follow each other as in the question, beside what each of them weighs. */
const follow = 0.5;

/** What people call things, behind what the manual calls them. */
const called = {
  "401 token": "unauthorized unauthorised", "403 policy": "forbidden deny denied", "agents mcp": "agent",
  alerts: "email mail smtp notification notify webhook opsgenie", "alerts chat": "slack discord telegram",
  "alerts pager": "pagerduty", audit: "compliance", "audit client": "who", away: "down outage unreachable degraded fallback",
  back: "backup", "backup recover": "snapshot restic rsync velero lvm", "base path": "subpath basepath",
  "block policy": "kick ban banned blacklist denylist", bottleneck: "slow sluggish slowness tune tuning optimize",
  "bring deleted back": "undelete undo", "bulk many": "batch", center: "centre", certificate: "cert",
  "certificate authority": "x509 pkix truststore keystore keytool cacerts jks pem pfx pkcs12 selfsigned",
  "certificate client": "mtls mutual", change: "forgot rotate modify edit reset", "changes different": "compare",
  chart: "helm", "check damaged": "integrity fsck", ci: "gitlab jenkins", "clean limit remove": "cleanup housekeeping",
  client: "account producer publisher consumer", "client people": "user", clocks: "ntp", "clocks skew": "drift",
  "compact smaller": "defrag defragment shrink vacuum", completion: "autocomplete", "compose container": "docker",
  "concepts words": "glossary terminology", console: "ui", "content security policy": "csp", damaged: "corrupt corruption",
  "damaged recover": "repair", "dark mode": "theme", "daylight saving": "dst", delete: "gdpr",
  "delete remove": "erase purge wipe prune flush trim", deployment: "rollout", disable: "suspend", "disk store": "storage",
  "disk sync": "iops", drop: "mute suppress silence ignore sampling", "dump export": "elasticsearch opensearch kibana",
  "duplicates twice": "duplicated dedup dedupe deduplicate", "enlarge larger": "increase resize", entra: "aad ad azure",
  "environment variables": "env", "export backup dump": "archive", "exporter logs": "fluent", file: "yaml",
  "files open": "fd descriptors", gap: "missing", "gapped offline": "disconnected airgap", "grafana console": "dashboard",
  "groups statistics": "summarize aggregate", guessing: "brute bruteforce lockout", healthy: "health probe uptime heartbeat",
  "healthy probes": "healthcheck ready unready readiness liveness",
  histogram: "heatmap chart graph trend visualize visualization", "hub clusters": "federation federated multicluster region",
  "identity provider issuer": "idp", "import bulk": "ingest ingestion", key: "kid", "keyboard shortcuts": "hotkey",
  "kind k3s": "minikube microk8s rancher talos", kubeconfig: "kubelogin krew kubectx", kubernetes: "k8s kube",
  "kubernetes dump": "exporter",
  "languages library": "javascript typescript nodejs java kotlin scala dotnet csharp rust php ruby spring springboot quarkus fabric8",
  large: "big huge", "left access": "offboard offboarding", licence: "license licensing opensource commercial",
  limits: "quota", "limits 429": "throttle throttled", "limits guessing": "throttling", "limits keep drop": "noisy",
  "limits rates": "qps rps tps backpressure backlog", "linux machine": "vm", "linux unit": "systemd", "log storage": "wal",
  logs: "syslog journald loglevel logrotate", long: "truncate", "lost recover": "disaster dr rpo rto bcp pitr",
  machine: "server", "managed kubernetes": "aks azure eks gke openshift", memory: "oom ram",
  "memory killed oomkilling": "oomkilled", metrics: "prometheus telemetry monitoring promql thanos mimir datadog",
  mirror: "synchronize collector forwarder", move: "relocate transfer", "move import": "migrate", name: "hostname",
  "network cut": "partition", "network policy": "calico cilium", "node moves": "reschedule rescheduled",
  "openid provider sign": "oidc", order: "ordering", outgoing: "outbound egress", phones: "mobile tablet",
  policy: "authorization authz acl abac whitelist allowlist", "policy rights": "privilege rbac",
  "policy rights allow": "permission permissions", "ports connections": "firewall",
  postgresql: "pg postgres mysql mariadb mongodb cockroachdb yugabyte jdbc",
  "profile slow": "freeze hang unresponsive deadlock", promises: "guarantee sla",
  "promises crash": "resilience resilient failsafe tolerance", "provider sign": "adfs keycloak ldap okta saml",
  proxy: "ingress lb loadbalancer cloudflare metallb f5", "rates noisy": "storm spike surge burst flood ddos abuse",
  "read only policy": "readonly", record: "emit send publish", recover: "lost", "recover backup": "restore",
  "recover killed": "crash crashed segfault", "refuse disabled": "disable",
  "register client": "signup enroll onboard onboarding", "release notes": "changelog", remove: "delete uninstall",
  replicas: "availability ha sharding shard partitioning", "replicas synchronous": "quorum raft consensus secondary",
  "restart followed": "reload", retention: "purge", "retention lifetime": "ttl", "roll back upgrade": "downgrade rollback",
  running: "effective", secret: "password passwd passphrase apikey",
  "security review": "hardening pentest soc2 iso27001 hipaa pci ccpa dsgvo", "settings config": "configuration",
  sign: "login logon logout", "sign provider": "sso", sizing: "size capacity planning estimate footprint",
  slow: "latency p95 p99", "slow figures": "perf performance", stolen: "leaked",
  "stolen leaked": "leak compromised breach hacked", stops: "shutdown graceful sigterm", store: "database db",
  tenants: "multitenancy tenancy", "tenants namespace policy": "isolation", terraform: "ansible puppet chef pulumi",
  "time zones": "timezone", "tls certificate": "https ssl", token: "oauth oauth2", "token sign": "authentication authn",
  "token sign policy": "auth", troubleshoot: "diagnose debug", update: "upgrade", variables: "environment",
  versions: "matrix compatibility eol lts", watch: "subscribe subscription pubsub sse", watches: "watchers",
  "withdraw stolen": "revoke revocation invalidate",
};

/** All that people say, as it is written. */
const said = words(Object.values(called).join(" "));

/**
 * What each word of people is in the manual, by its stem.
 * @type {Map<string, string>}
 */
const synonyms = new Map();
for (const [manual, people] of Object.entries(called)) {
  for (const word of words(people).map(stem)) synonyms.set(word, `${synonyms.get(word) ?? ""} ${manual}`);
}

/** Words that say nothing. */
const stop = new Set((
  "a am an and any anybody are as at be because been being but by can could did do does for from had has have he " +
  "her here him his how i if in is it its just large let many me might much must my need not of on one or our out shall " +
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
 * Returns the stems of a text, and each two that follow each other, as one term with a space.
 * @param {string} text
 */
function terms(text) {
  const stems = words(text).map(stem);
  return [...stems, ...pairs(stems)];
}

/** @param {string[]} stems */
function pairs(stems) {
  return stems.slice(1).map((w, i) => `${stems[i]} ${w}`);
}

/**
 * What is known of all entries: in how many a term is, and the words as they are written.
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
    const parts = [entry.title, entry.page, entry.about ?? "", entry.text];
    for (const term of parts.flatMap(terms)) counts.set(term, (counts.get(term) ?? 0) + 1);
    for (const term of counts.keys()) known.set(term, (known.get(term) ?? 0) + 1);
    const all = words(parts.join(" "));
    for (const w of all) written.add(w);
    const [title, page, about] = parts.map((part) => new Set(terms(part)));
    return { entry, title, page, about, counts, length: all.length };
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
 * does not have it, the two words that it joins, what it begins or what it misspells.
 * @param {string} word @param {Index} index
 */
function meanings(word, { known, written }) {
  /** @type {Map<string, number>} */
  const all = new Map([[stem(word), 1]]);
  for (const other of words(synonyms.get(stem(word)) ?? "")) if (!all.has(stem(other))) all.set(stem(other), 0.6);
  if (all.size > 1 || known.has(stem(word)) || word.length < 3) return all;
  for (const w of known.keys()) if (w.includes(" ") && w.replace(" ", "") === stem(word)) all.set(w, 1);
  if (all.size > 1) return all;
  for (const w of known.keys()) if (w.startsWith(word) && !w.includes(" ")) all.set(w, 0.6); // still being typed
  for (let mistakes = 1; all.size === 1 && mistakes <= 2 && word.length > 3 * mistakes; mistakes++) {
    for (const w of [...written, ...said]) {
      if (distance(w, word) !== mistakes) continue;
      for (const other of [w, ...words(synonyms.get(stem(w)) ?? "")]) all.set(stem(other), 0.6);
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
  const telling = (asked.some((w) => !stop.has(w)) ? asked.filter((w) => !stop.has(w)) : asked).slice(0, 16);
  const wanted = telling.map((w) => meanings(w, all));
  for (let i = 1; i < wanted.length; i++) {
    const joined = stem(telling[i - 1] + telling[i]); // written as one word
    if (known.has(joined)) for (const stems of [wanted[i - 1], wanted[i]]) stems.set(joined, 0.6);
  }
  if (wanted.length === 0) return [];
  const together = pairs(asked.map(stem)).map((pair) => new Map([[pair, follow]]));
  const exact = asked.join(" ");
  /** @type {Map<string, number>} */
  const shown = new Map();
  const whole = new Map([...pages].map(([page, p]) => [page, share * score(p, wanted, together, known, parsed.length, all.averagePage)]));
  return parsed
    .map((p) => ({ entry: p.entry, score: score(p, wanted, together, known, parsed.length, all.average) * (words(p.entry.title).join(" ") === exact ? 4 : 1) }))
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
 * Returns how well an entry or a page answers: the sum of what its terms weigh. Words that follow each other there as in the
 * question add to it; a word that is missing takes from it.
 * @param {Parsed} p @param {Map<string, number>[]} wanted @param {Map<string, number>[]} together @param {Map<string, number>} known
 * @param {number} all @param {number} average
 */
function score(p, wanted, together, known, all, average) {
  /** @param {Map<string, number>} meanings */
  const weigh = (meanings) => {
    let best = 0;
    for (const [w, weight] of meanings) {
      const n = p.counts.get(w);
      if (!n) continue;
      const rare = Math.log(1 + (all - (known.get(w) ?? 0) + 0.5) / ((known.get(w) ?? 0) + 0.5));
      const often = n / (n + 1.2 * (0.4 + 0.6 * p.length / average));
      best = Math.max(best, weight * rare * (often + (p.title.has(w) ? 1.5 : 0) + (p.page.has(w) ? 1 : 0) + (p.about.has(w) ? 2 : 0)));
    }
    return best;
  };
  const found = wanted.map(weigh).filter((weight) => weight > 0);
  const sum = [...found, ...together.map(weigh)].reduce((a, b) => a + b, 0);
  return sum * (found.length / wanted.length) ** 2 * (p.entry.title === p.entry.page ? 1.3 : 1); // the page before its parts
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
