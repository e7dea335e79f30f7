package observability_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// label is a label of a metric: all values that it may have, or, where they are not known before, what they are. With
// both, open says when it is empty. Said stands for values that another page has.
type label struct {
	name   string
	values []string
	open   string
	said   string
}

// String describes the label for the page.
func (l label) String() string {
	all := "`" + strings.Join(l.values, "`, `") + "`"
	switch {
	case l.said != "":
		all = l.said
	case len(l.values) == 0:
		all = l.open
	case l.open != "":
		all += "; " + l.open
	}
	return "`" + l.name + "`: " + all
}

var (
	seatClass   = label{name: "class", values: []string{"read", "write", "watch", "refusal"}}
	source      = label{name: "namespace", open: "what is mirrored; empty for all"}
	jwksURL     = label{name: "url", open: "address of the issuer's keys"}
	verb        = label{name: "verb", open: "the verb of Kubernetes, such as `list`; else the method, or `other`"}
	buildLabels = []label{
		{name: "goversion", open: "version of Go"},
		{name: "revision", open: "commit"},
		{name: "version", open: "release"},
	}
)

// metricLabels are the labels of each metric that has any.
var metricLabels = map[string][]label{
	"bearer_tokens_total": {{name: "outcome", values: []string{
		"verified", "remembered", "other scheme than Bearer", "empty token", "several Authorization headers", "tokens in header and query",
		"alg not allowed", "claim malformed", "expired", "header damaged", "header extension", "key unknown", "keys unavailable",
		"kid missing or malformed", "lives too long", "not base64url", "not three parts", "not valid yet", "other audience", "other issuer",
		"payload damaged", "sender-constrained", "several audiences", "signature wrong", "sub missing or malformed",
		"time missing or malformed", "times contradict each other", "too long", "typ of another token",
	}, said: "`verified`, `remembered`, or the reason of [a refusal](errors.md#refused-tokens)"}},
	"eventsvc_aggregate_forwarded_total":  {{name: "result", values: []string{"answered", "away", "refused"}}},
	"eventsvc_aggregate_reviews_total":    {{name: "result", values: []string{"allowed", "denied", "failed", "kept", "masters"}}},
	"eventsvc_aggregate_sent_bytes_total": {{name: "user", open: "name of the user"}},
	"eventsvc_aggregate_unidentified_total": {{name: "reason", values: []string{
		"not-ready", "no-certificate", "unknown-authority", "expired", "no-client-auth", "name-not-allowed", "no-user",
	}}},
	"eventsvc_alerts_failures_total": {
		{name: "code", open: "status of HTTP"},
		{name: "to", open: "address of what was asked"},
	},
	"eventsvc_alerts_told_total":                    {{name: "rule", open: "name of the rule, or `EventsMissed`"}},
	"eventsvc_audit_entries_total":                  {{name: "result", values: []string{"written", "dropped"}}},
	"eventsvc_basic_trades_total":                   {{name: "outcome", values: []string{"ok", "refused", "not-accepted", "throttled", "unavailable"}}},
	"eventsvc_build_info":                           buildLabels,
	"eventsvc_bulk_events_total":                    {{name: "code", open: "status of the line"}},
	"eventsvc_cluster_complete_seconds":             {{name: "cluster", open: "the label of the cursor"}},
	"eventsvc_cluster_last_event_timestamp_seconds": {{name: "cluster", open: "the label of the event"}},
	"eventsvc_mirror_connected":                     {source},
	"eventsvc_mirror_enriched_total":                {{name: "result", values: []string{"added", "late", "unknown", "off"}}},
	"eventsvc_mirror_events_total":                  {source, {name: "result", values: []string{"created", "replaced", "unchanged", "refused", "kept"}}},
	"eventsvc_mirror_failures_total": {
		{name: "code", open: "status of HTTP"},
		{name: "side", values: []string{"source", "target"}},
	},
	"eventsvc_mirror_dropped_total": {{name: "rule", open: "name of the rule"}},
	"eventsvc_mirror_gaps_total":    {source},
	"eventsvc_mirror_lag_seconds":   {source},
	"eventsvc_mirror_lists_total":   {source, {name: "reason", values: []string{"first", "gone", "rewound", "silent"}}},
	"eventsvc_mirror_version":       {source},
	"eventsvc_policy_reloads_total": {{name: "result", values: []string{"ok", "error"}}},
	"certificate_reloads_total":     {{name: "result", values: []string{"ok", "error"}}},
	"eventsvc_rules_reloads_total":  {{name: "result", values: []string{"ok", "error"}}},
	"issuers_reloads_total":         {{name: "result", values: []string{"ok", "error"}}},
	"eventsvc_observed_events_total": {
		{name: "cluster", open: "cluster of the event"},
		{name: "kind", open: "kind of the object"},
		{name: "namespace", open: "namespace of the event"},
		{name: "reason", open: "reason of the event"},
		{name: "type", open: "`Normal` or `Warning`; all five are `other` beyond `--observed-metrics`"},
	},
	"eventsvc_requests_refused_total": {{name: "limit", values: []string{
		"watches", "client-watches", "client-tails", "requests", "client-requests", "answers", "client-answers", "exports", "create-rate", "client-create-rate", "namespace-create-rate",
		"bulk-events", "body", "body-time", "query", "selector", "depth", "values", "patch-operations", "labels", "annotations", "audit", "impersonation", "origin", "basic",
	}}},
	"eventsvc_requests_waiting":  {seatClass},
	"eventsvc_requests_working":  {seatClass},
	"http_connections_cut_total": {{name: "in", values: []string{"header", "answer", "source", "unread"}}},
	"http_requests_total": {
		{name: "client", values: []string{
			"kubectl", "eventsvc", "tokensvc", "client-go", "python", "go", "browser", "curl", "prometheus", "probe", "other",
		}},
		{name: "code", open: "status of HTTP; `499` if the client left first"},
		verb,
	},
	"http_response_start_seconds":          {verb},
	"jwks_fetches_total":                   {{name: "result", values: []string{"ok", "failed"}}, jwksURL},
	"jwks_last_success_timestamp_seconds":  {jwksURL},
	"promhttp_metric_handler_errors_total": {{name: "cause", open: "`encoding` or `gathering`"}},
	"tokensvc_build_info":                  buildLabels,
	"tokensvc_token_requests_total": {
		{name: "method", values: []string{"client_secret_post", "client_secret_basic", "private_key_jwt", "federated_jwt"}, open: "empty if there were no credentials"},
		{name: "outcome", open: "`issued`, or an outcome of [the table of errors](../../../tokensvc/README.md#errors-of-the-token-endpoint)"},
	},
}

var pair = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// checkLabels reports a label or a value that a service shows and the table lacks, one that the table has and no
// service can show, and a metric of the table that no service has.
func checkLabels(t *testing.T, scrapes []scrape) {
	t.Helper()
	seen := map[string]bool{} // metrics, and labels after a blank
	for _, now := range scrapes {
		for series := range now.samples {
			name, pairs, _ := strings.Cut(series, "{")
			if now.help[name] == "" {
				name = regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
			}
			if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
				continue
			}
			for _, p := range pair.FindAllStringSubmatch(pairs, -1) {
				if !slices.Contains([]string{"job", "instance", "le"}, p[1]) {
					seen[name+" "+p[1]] = true
					checkLabel(t, name, p[1], p[2])
				}
			}
		}
	}
	given := texts(t)
	for name, all := range metricLabels {
		for _, l := range all {
			if !seen[name+" "+l.name] {
				t.Errorf("the table has label %s of %s, which no service shows", l.name, name)
			}
			for _, value := range l.values {
				if !given[value] {
					t.Errorf("%s: the code never gives %s the value %q", name, l.name, value)
				}
			}
		}
	}
}

func checkLabel(t *testing.T, metric, name, value string) {
	t.Helper()
	at := slices.IndexFunc(metricLabels[metric], func(l label) bool { return l.name == name })
	if at < 0 {
		t.Errorf("the table lacks label %s of %s, which is %q", name, metric, value)
	} else if l := metricLabels[metric][at]; len(l.values) > 0 && !slices.Contains(l.values, value) && (value != "" || l.open == "") {
		t.Errorf("the table lacks the value %q of label %s of %s", value, name, metric)
	}
}

// texts returns all texts that are written in the code of the services.
func texts(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, folder := range []string{"eventsvc/internal", "tokensvc/internal", "shared"} {
		err := filepath.WalkDir(filepath.Join("../../..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, _ := strconv.Unquote(literal.Value)
					all[text] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
