package observability_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// cases hold for each alert what a scrape every 15 s sees when it has to fire,
// and what it sees when nothing is wrong.
var cases = map[string]struct{ bad, good string }{
	"ServiceDown": {`up{job="eventsvc",instance="a"} 0x300`, `up{job="eventsvc",instance="a"} 1x300`},
	"ServerErrors": {
		"http_requests_total{job=\"eventsvc\",code=\"200\"} 0+98x300\nhttp_requests_total{job=\"eventsvc\",code=\"503\"} 0+2x300",
		"http_requests_total{job=\"eventsvc\",code=\"200\"} 0+98x300\nhttp_requests_total{job=\"eventsvc\",code=\"404\"} 0+2x300",
	},
	"SlowAnswers": {
		"http_response_start_seconds_bucket{job=\"eventsvc\",le=\"0.5\"} 0+90x300\nhttp_response_start_seconds_bucket{job=\"eventsvc\",le=\"1\"} 0+100x300\nhttp_response_start_seconds_bucket{job=\"eventsvc\",le=\"+Inf\"} 0+100x300",
		"http_response_start_seconds_bucket{job=\"eventsvc\",le=\"0.5\"} 0+100x300\nhttp_response_start_seconds_bucket{job=\"eventsvc\",le=\"1\"} 0+100x300\nhttp_response_start_seconds_bucket{job=\"eventsvc\",le=\"+Inf\"} 0+100x300",
	},
	"FilesRunOut": {
		"process_open_fds{job=\"eventsvc\"} 900x300\nprocess_max_fds{job=\"eventsvc\"} 1024x300",
		"process_open_fds{job=\"eventsvc\"} 100x300\nprocess_max_fds{job=\"eventsvc\"} 1024x300",
	},
	"KeySetStale": {`jwks_last_success_timestamp_seconds{job="eventsvc",url="u"} -3600x300`, `jwks_last_success_timestamp_seconds{job="eventsvc",url="u"} 0+15x300`},
	"TokensRefused": {
		"bearer_tokens_total{job=\"eventsvc\",outcome=\"remembered\"} 0+70x300\nbearer_tokens_total{job=\"eventsvc\",outcome=\"expired\"} 0+30x300",
		"bearer_tokens_total{job=\"eventsvc\",outcome=\"remembered\"} 0+99x300\nbearer_tokens_total{job=\"eventsvc\",outcome=\"expired\"} 0+1x300",
	},
	"PolicyFileBad":  {`eventsvc_policy_file_good{job="eventsvc"} 0x300`, `eventsvc_policy_file_good{job="eventsvc"} 1x300`},
	"RulesFileBad":   {`eventsvc_rules_file_good{job="eventsvc"} 0x300`, `eventsvc_rules_file_good{job="eventsvc"} 1x300`},
	"IssuersFileBad": {`issuers_file_good{job="eventsvc"} 0x300`, `issuers_file_good{job="eventsvc"} 1x300`},
	"CertificateBad": {`certificate_file_good{job="eventsvc"} 0x300`, `certificate_file_good{job="eventsvc"} 1x300`},
	"WatchesNearLimit": {
		"eventsvc_watches{job=\"eventsvc\"} 170x300\neventsvc_max_watches{job=\"eventsvc\"} 200x300",
		"eventsvc_watches{job=\"eventsvc\"} 100x300\neventsvc_max_watches{job=\"eventsvc\"} 200x300",
	},
	"RequestsRefused": {`eventsvc_requests_refused_total{job="eventsvc",limit="requests"} 0+15x300`, `eventsvc_requests_refused_total{job="eventsvc",limit="requests"} 0+1x300`},
	"WatchersBehind":  {`store_watch_lag_revisions{job="eventsvc"} 5000x300`, `store_watch_lag_revisions{job="eventsvc"} 50x300`},
	"StoreFull":       {`store_full{job="eventsvc"} 1x300`, `store_full{job="eventsvc"} 0x300`},
	"DiskNearlyFull":  {`store_disk_free_bytes{job="eventsvc"} 1e8x300`, `store_disk_free_bytes{job="eventsvc"} 1e9x300`},
	"SlowCommits": {
		"store_commit_seconds_bucket{le=\"0.2\"} 0+90x300\nstore_commit_seconds_bucket{le=\"0.4\"} 0+100x300\nstore_commit_seconds_bucket{le=\"+Inf\"} 0+100x300",
		"store_commit_seconds_bucket{le=\"0.2\"} 0+100x300\nstore_commit_seconds_bucket{le=\"0.4\"} 0+100x300\nstore_commit_seconds_bucket{le=\"+Inf\"} 0+100x300",
	},
	"RetentionLate": {`store_retention_lag_seconds{job="eventsvc"} 0+15x300`, `store_retention_lag_seconds{job="eventsvc"} 10x300`},
	"RetentionCutShort": {
		"store_projected_age_seconds{job=\"eventsvc\"} 3600x300\nstore_retention_seconds{job=\"eventsvc\"} 7200x300",
		"store_projected_age_seconds{job=\"eventsvc\"} 0x300\nstore_retention_seconds{job=\"eventsvc\"} 7200x300",
	},
	"MaintenanceFails":     {`store_maintenance_failures_total{job="eventsvc"} 0+1x300`, `store_maintenance_failures_total{job="eventsvc"} 0x300`},
	"DamagedData":          {`store_damaged_reads_total{job="eventsvc"} 0+1x300`, `store_damaged_reads_total{job="eventsvc"} 0x300`},
	"AuditLogFailing":      {`eventsvc_audit_failing{job="eventsvc"} 1x300`, `eventsvc_audit_failing{job="eventsvc"} 0x300`},
	"AuditEntriesLost":     {`eventsvc_audit_entries_total{job="eventsvc",result="dropped"} 0+1x300`, `eventsvc_audit_entries_total{job="eventsvc",result="written"} 0+1x300`},
	"DatabaseAway":         {`store_database_up{job="eventsvc"} 0x300`, `store_database_up{job="eventsvc"} 1x300`},
	"DatabaseLostCommits":  {`store_database_lost_commits_total{job="eventsvc"} 0+1x300`, `store_database_lost_commits_total{job="eventsvc"} 0x300`},
	"StandbyAway":          {`store_database_standby_wait_seconds{job="eventsvc"} 0+15x300`, `store_database_standbys_missing{job="eventsvc"} 0x300`},
	"NoSynchronousStandby": {`store_database_synchronous_standby{job="eventsvc"} 0x300`, `store_database_synchronous_standby{job="eventsvc"} 1x300`},
	"CopyBehind": {
		"store_copy_lag_seconds{job=\"eventsvc\"} 0+15x300\nstore_database_up{job=\"eventsvc\"} 1x300",
		"store_copy_lag_seconds{job=\"eventsvc\"} 0+15x300\nstore_database_up{job=\"eventsvc\"} 0x300",
	},
	"DatabaseSlow": {
		"store_database_head_seconds_bucket{le=\"0.2\"} 0+90x300\nstore_database_head_seconds_bucket{le=\"0.4\"} 0+100x300\nstore_database_head_seconds_bucket{le=\"+Inf\"} 0+100x300",
		"store_database_head_seconds_bucket{le=\"0.2\"} 0+100x300\nstore_database_head_seconds_bucket{le=\"0.4\"} 0+100x300\nstore_database_head_seconds_bucket{le=\"+Inf\"} 0+100x300",
	},
	"MirrorBehind": {`eventsvc_mirror_lag_seconds{job="eventsvc-mirror",namespace="*"} 0+15x300`, `eventsvc_mirror_lag_seconds{job="eventsvc-mirror",namespace="*"} 2x300`},
	"MirrorGap": { // found before the first scrape, long before, and none
		"eventsvc_mirror_gaps_total{job=\"eventsvc-mirror\"} _x240 1x60\nprocess_start_time_seconds{job=\"eventsvc-mirror\"} _x240 3590x60",
		"eventsvc_mirror_gaps_total{job=\"eventsvc-mirror\"} 1x300\nprocess_start_time_seconds{job=\"eventsvc-mirror\"} 0x300",
	},
	"MirrorRefused": {`eventsvc_mirror_events_total{job="eventsvc-mirror",result="refused"} 0+1x300`, `eventsvc_mirror_events_total{job="eventsvc-mirror",result="kept"} 0+1x300`},
	"ClusterBehind": { // a cluster that stays behind at one replica; then two that are near
		"eventsvc_cluster_complete_seconds{job=\"eventsvc\",cluster=\"east\",instance=\"a\"} 0+15x300\neventsvc_cluster_complete_seconds{job=\"eventsvc\",cluster=\"west\",instance=\"a\"} 40x300",
		"eventsvc_cluster_complete_seconds{job=\"eventsvc\",cluster=\"east\"} 90x300\neventsvc_cluster_complete_seconds{job=\"eventsvc\",cluster=\"west\"} 300x300",
	},
	"ClusterSilent": { // a silent cluster beside one that is not, and before a restart; then one cluster at two replicas
		"eventsvc_cluster_last_event_timestamp_seconds{job=\"eventsvc\",cluster=\"east\"} -7200x20\neventsvc_cluster_last_event_timestamp_seconds{job=\"eventsvc\",cluster=\"west\"} 0+15x300",
		"eventsvc_cluster_last_event_timestamp_seconds{job=\"eventsvc\",cluster=\"east\",instance=\"a\"} -7200x300\neventsvc_cluster_last_event_timestamp_seconds{job=\"eventsvc\",cluster=\"east\",instance=\"b\"} 0+15x300",
	},
	"AggregateDown": { // both replicas; then one of them
		"up{job=\"eventsvc-aggregate\",instance=\"a\"} 0x300\nup{job=\"eventsvc-aggregate\",instance=\"b\"} 0x300",
		"up{job=\"eventsvc-aggregate\",instance=\"a\"} 0x300\nup{job=\"eventsvc-aggregate\",instance=\"b\"} 1x300",
	},
	"AlertsBehind":         {`eventsvc_alerts_lag_seconds{job="eventsvc-alerts"} 0+15x300`, `eventsvc_alerts_lag_seconds{job="eventsvc-alerts"} 5x300`},
	"AlertsUndelivered":    {`eventsvc_alerts_waiting_seconds{job="eventsvc-alerts"} 0+15x300`, `eventsvc_alerts_waiting_seconds{job="eventsvc-alerts"} 0x300`},
	"AlertsLost":           {`eventsvc_alerts_lost_total{job="eventsvc-alerts"} 0+1x300`, `eventsvc_alerts_lost_total{job="eventsvc-alerts"} 1x300`},
	"AggregateReviewsFail": {`eventsvc_aggregate_reviews_total{job="eventsvc-aggregate",result="failed"} 0+1x300`, `eventsvc_aggregate_reviews_total{job="eventsvc-aggregate",result="denied"} 0+1x300`},
	"AggregateServerAway":  {`eventsvc_aggregate_forwarded_total{job="eventsvc-aggregate",result="refused"} 0+1x300`, `eventsvc_aggregate_forwarded_total{job="eventsvc-aggregate",result="answered"} 0+1x300`},
	"BackupOld": { // old at one replica, and never at the other; then one of today, and none ever
		"store_last_backup_timestamp_seconds{job=\"eventsvc\",instance=\"a\"} -172800x300\nstore_last_backup_timestamp_seconds{job=\"eventsvc\",instance=\"b\"} 0x300",
		"store_last_backup_timestamp_seconds{job=\"eventsvc\",instance=\"a\"} 15x300\nstore_last_backup_timestamp_seconds{job=\"other\",instance=\"b\"} 0x300",
	},
	"RegistrationsUnreachable": {`tokensvc_token_requests_total{job="tokensvc",outcome="store_unavailable"} 0+1x300`, `tokensvc_token_requests_total{job="tokensvc",outcome="issued"} 0+1x300`},
	"SecretsGuessed":           {`tokensvc_token_requests_total{job="tokensvc",outcome="wrong_secret"} 0+30x300`, `tokensvc_token_requests_total{job="tokensvc",outcome="wrong_secret"} 0+1x300`},
}

// alertRules reads all alerts.
func alertRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(folder+"/alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if errs != nil {
		t.Fatal(errs)
	}
	return groups.Groups[0].Rules
}

// TestAlerts fires every alert with bad numbers and none with good ones.
func TestAlerts(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, rule := range alertRules(t) {
		seen++
		if rule.Annotations["summary"] == "" || rule.Annotations["action"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s lacks a summary, an action or a severity", rule.Alert)
		}
		c, ok := cases[rule.Alert]
		if !ok {
			t.Errorf("%s has no case here", rule.Alert)
			continue
		}
		t.Run(rule.Alert, func(t *testing.T) {
			t.Parallel()
			if !fires(t, rule, indent(c.bad)) {
				t.Error("does not fire")
			}
			if fires(t, rule, indent(c.good)) {
				t.Error("fires though all is well")
			}
		})
	}
	if seen != len(cases) {
		t.Errorf("%d alerts and %d cases", seen, len(cases))
	}
}

// fires evaluates the rule every 15 s for as long as there are samples.
func fires(t *testing.T, rule rulefmt.Rule, series string) bool {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 15s\n"+series)
	defer storage.Close()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	defer engine.Close()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	alert := rules.NewAlertingRule(rule.Alert, expr, time.Duration(rule.For), 0, labels.FromMap(rule.Labels),
		labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	query := rules.EngineQueryFunc(engine, storage)
	for at := time.Unix(0, 0); at.Before(time.Unix(290*15, 0)); at = at.Add(15 * time.Second) {
		if _, err := alert.Eval(context.Background(), 0, at, query, &url.URL{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	active := alert.ActiveAlerts()
	return len(active) > 0 && active[0].State == rules.StateFiring
}

func indent(series string) string {
	return "  " + strings.ReplaceAll(series, "\n", "\n  ") + "\n"
}

// TestAlertsDocumented compares the alerts with the page about them, which says what to do about each.
func TestAlertsDocumented(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	const path = "../../docs/reference/alerts.md"
	page.WriteString(prose(t, path, "# Alerts", "| alert |") + "| alert | | what to do |\n|---|---|---|\n")
	for _, rule := range alertRules(t) {
		fmt.Fprintf(&page, "| %s | %s | %s |\n", rule.Alert, rule.Labels["severity"],
			manual.ReplaceAllString(templated.ReplaceAllString(rule.Annotations["action"], "`$1`"), "[$0](../$0)"))
	}
	page.WriteString("\n" + prose(t, path, "## The end of certificates", "```yaml"))
	for _, c := range eventAlertCases {
		fmt.Fprintf(&page, "```yaml\n%s```\n", c.rule)
	}
	samePage(t, path, page.String())
}

// prose returns the hand-written part of a page, from one text up to another.
func prose(t *testing.T, path, from, to string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(page), from)
	said, _, ends := strings.Cut(rest, to)
	if !begins || !ends {
		t.Fatalf("%s has no %q before %q", path, from, to)
	}
	return from + said
}

// templated is a label in the text of an alert.
var templated = regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)

// manual is a page of the manual in the text of an alert.
var manual = regexp.MustCompile(`how-to/[a-z-]+\.md`)

// eventAlertCases are the examples there, with what a scrape every 15 s sees when they have to fire, and when not.
var eventAlertCases = []struct{ rule, bad, good string }{
	{
		`- alert: PodsBackOff
  expr: sum by (cluster, namespace) (increase(eventsvc_observed_events_total{reason="BackOff"}[10m])) > 20
  labels: {severity: ticket}
  annotations: {summary: "Containers in {{ $labels.namespace }} do not start"}
`,
		`eventsvc_observed_events_total{reason="BackOff",kind="Pod",namespace="shop",cluster="a",type="Warning"} 0+1x300`,
		`eventsvc_observed_events_total{reason="BackOff",kind="Pod",namespace="shop",cluster="a",type="Warning"} 100x300`,
	},
	{
		`- alert: NewWarning
  expr: eventsvc_observed_events_total{type=~"Warning|other"} unless eventsvc_observed_events_total offset 1h
  labels: {severity: ticket}
  annotations: {summary: "{{ $labels.reason }} of a {{ $labels.kind }} in {{ $labels.namespace }} for the first time"}
`,
		`eventsvc_observed_events_total{reason="Odd",kind="Pod",namespace="shop",cluster="a",type="Warning"} _x250 1x50`,
		`eventsvc_observed_events_total{reason="Odd",kind="Pod",namespace="shop",cluster="a",type="Warning"} _x10 1x290`,
	},
}

// TestEventAlerts fires the examples of the page.
func TestEventAlerts(t *testing.T) {
	t.Parallel()
	for _, c := range eventAlertCases {
		groups, errs := rulefmt.Parse([]byte("groups:\n- name: x\n  rules:\n"+indent(strings.TrimSpace(c.rule))), false, model.UTF8Validation,
			parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if errs != nil {
			t.Fatal(errs)
		}
		rule := groups.Groups[0].Rules[0]
		if !fires(t, rule, indent(c.bad)) {
			t.Errorf("%s does not fire", rule.Alert)
		}
		if fires(t, rule, indent(c.good)) {
			t.Errorf("%s fires though all is well", rule.Alert)
		}
	}
}

// dashboardExpressions are what the panels of the dashboard ask for, by their titles.
func dashboardExpressions(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(folder + "/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	expressions := map[string][]string{}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 || expressions[panel.Title] != nil {
			t.Errorf("panel %q asks nothing, or is there twice", panel.Title)
		}
		for _, target := range panel.Targets {
			expressions[panel.Title] = append(expressions[panel.Title], target.Expr)
		}
	}
	if len(expressions) == 0 {
		t.Error("no panels")
	}
	return expressions
}

// TestMetricsExist: what alerts and dashboard ask for is what the services have.
func TestMetricsExist(t *testing.T) {
	t.Parallel()
	issuers := filepath.Join(t.TempDir(), "issuers.yaml")
	write(t, issuers, "[]\n")
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, rules, "[{name: noise, where: reason=Pulled, drop: true}]\n")
	tokens, events, token := startBoth(t, "RULES_FILE="+rules, "MAX_WATCHES=4", "AUDIT=metadata", "POLICY_FILE=../../compose/policy.yaml", "ISSUERS_FILE="+issuers, "OBSERVED_METRICS=10")
	events.watch(t, token)
	events.send(t, "GET", eventsPath+"?watch=true", token, "", http.StatusTooManyRequests)
	events.createIn(t, token, "east")
	events.mirroredUntil(t, token, "east", time.Now())
	mirror := startMirror(t, tokens, events.url, startTarget(t, tokens), "RULES_FILE="+rules)
	aggregate := startAggregate(t, startTarget(t, tokens, "GROUP_DOMAIN=tidings.example"), token).svc
	watched := startTarget(t, tokens) // of events, the client has its only watch
	alerts := startAlerts(t, tokens, watched, tokens.url)
	watched.createIn(t, token, "east")
	alerts.scrapedOnce(t, "tokensvc takes no alert", func(now scrape) bool { return now.sum("eventsvc_alerts_failures_total") > 0 })
	onDatabase, _ := startOnDatabase(t, tokens)
	known, help := map[string]bool{}, map[string]string{}
	var scrapes []scrape
	for _, s := range []*svc{tokens, events, mirror, aggregate, alerts, onDatabase} {
		now := s.scraped(t)
		scrapes = append(scrapes, now)
		maps.Copy(help, now.help)
		for series := range now.samples {
			name, _, _ := strings.Cut(series, "{")
			known[name] = true
		}
	}
	checkLabels(t, scrapes)
	documented(t, help)
	expressions := dashboardExpressions(t)
	for _, rule := range alertRules(t) {
		expressions[rule.Alert] = append(expressions[rule.Alert], rule.Expr)
	}
	for where, exprs := range expressions {
		for _, expr := range exprs {
			parsed, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(expr, "$__rate_interval", "1m"))
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
				if v, ok := node.(*parser.VectorSelector); ok && !known[v.Name] {
					t.Errorf("%s: no service has a metric %s", where, v.Name)
				}
				return nil
			})
		}
	}
}

var update = flag.Bool("update", false, "write deploy/docs/reference/alerts.md and metrics.md")

// documented compares the metrics that the services show with the page about them.
func documented(t *testing.T, help map[string]string) {
	t.Helper()
	var table strings.Builder
	table.WriteString(prose(t, "../../docs/reference/metrics.md", "# Metrics", "| metric |") + "| metric | | labels and their values |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(help)) {
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			shown := make([]string, len(metricLabels[name]))
			for i, l := range metricLabels[name] {
				shown[i] = l.String()
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, help[name], strings.Join(shown, "<br>"))
		}
	}
	samePage(t, "../../docs/reference/metrics.md", table.String())
}

// samePage compares a page of the documentation with what it has to be.
func samePage(t *testing.T, page, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s: run this test with -update (-want +got):\n%s", page, diff)
	}
}
