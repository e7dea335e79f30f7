package observability_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

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
	"ServiceDown": {`up{job="eventsvc",instance="a"} 0x200`, `up{job="eventsvc",instance="a"} 1x200`},
	"ServerErrors": {
		"http_requests_total{job=\"eventsvc\",code=\"200\"} 0+98x200\nhttp_requests_total{job=\"eventsvc\",code=\"503\"} 0+2x200",
		"http_requests_total{job=\"eventsvc\",code=\"200\"} 0+98x200\nhttp_requests_total{job=\"eventsvc\",code=\"404\"} 0+2x200",
	},
	"SlowAnswers": {
		"http_response_start_seconds_bucket{job=\"eventsvc\",le=\"0.5\"} 0+90x200\nhttp_response_start_seconds_bucket{job=\"eventsvc\",le=\"1\"} 0+100x200\nhttp_response_start_seconds_bucket{job=\"eventsvc\",le=\"+Inf\"} 0+100x200",
		"http_response_start_seconds_bucket{job=\"eventsvc\",le=\"0.5\"} 0+100x200\nhttp_response_start_seconds_bucket{job=\"eventsvc\",le=\"1\"} 0+100x200\nhttp_response_start_seconds_bucket{job=\"eventsvc\",le=\"+Inf\"} 0+100x200",
	},
	"FilesRunOut": {
		"process_open_fds{job=\"eventsvc\"} 900x200\nprocess_max_fds{job=\"eventsvc\"} 1024x200",
		"process_open_fds{job=\"eventsvc\"} 100x200\nprocess_max_fds{job=\"eventsvc\"} 1024x200",
	},
	"KeySetStale": {`jwks_last_success_timestamp_seconds{job="eventsvc",url="u"} -3600x200`, `jwks_last_success_timestamp_seconds{job="eventsvc",url="u"} 0+15x200`},
	"TokensRefused": {
		"bearer_tokens_total{job=\"eventsvc\",outcome=\"remembered\"} 0+70x200\nbearer_tokens_total{job=\"eventsvc\",outcome=\"expired\"} 0+30x200",
		"bearer_tokens_total{job=\"eventsvc\",outcome=\"remembered\"} 0+99x200\nbearer_tokens_total{job=\"eventsvc\",outcome=\"expired\"} 0+1x200",
	},
	"PolicyFileBad":            {`eventsvc_policy_file_good{job="eventsvc"} 0x200`, `eventsvc_policy_file_good{job="eventsvc"} 1x200`},
	"WatchesNearLimit":         {`eventsvc_watches{job="eventsvc"} 17000x200`, `eventsvc_watches{job="eventsvc"} 1000x200`},
	"RegistrationsUnreachable": {`tokensvc_token_requests_total{job="tokensvc",outcome="store_unavailable"} 0+1x200`, `tokensvc_token_requests_total{job="tokensvc",outcome="issued"} 0+1x200`},
	"SecretsGuessed":           {`tokensvc_token_requests_total{job="tokensvc",outcome="wrong_secret"} 0+30x200`, `tokensvc_token_requests_total{job="tokensvc",outcome="wrong_secret"} 0+1x200`},
}

// TestAlerts fires every alert with bad numbers and none with good ones.
func TestAlerts(t *testing.T) {
	t.Parallel()
	groups, errs := rulefmt.ParseFile("alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if errs != nil {
		t.Fatal(errs)
	}
	seen := 0
	for _, rule := range groups.Groups[0].Rules {
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
			if !fires(t, rule, c.bad) {
				t.Error("does not fire")
			}
			if fires(t, rule, c.good) {
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
	storage := promqltest.LoadedStorage(t, "load 15s\n"+indent(series))
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
	for at := time.Unix(0, 0); at.Before(time.Unix(190*15, 0)); at = at.Add(15 * time.Second) {
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

// TestDashboard reads the dashboard and every expression in it.
func TestDashboard(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) == 0 {
		t.Error("no panels")
	}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q asks nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")); err != nil {
				t.Errorf("panel %q: %v", panel.Title, err)
			}
		}
	}
}
