package ctl

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/alerts"
	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/console"
	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/livefile"
	"tidings.example/shared/printable"
	"tidings.example/shared/safefile"
	"tidings.example/shared/service"
)

// alertsCmd sends alerts of events to Alertmanager.
type alertsCmd struct {
	access       `embed:""`
	Namespace    string        `short:"n" placeholder:"NAME" help:"Only events of this namespace. Default: all."`
	Selector     string        `short:"l" placeholder:"SELECTOR" help:"Only events with these labels, such as tidings.example/cluster=east."`
	Rules        string        `placeholder:"FILE" help:"The rules; followed while running. A YAML list of name, search, endedBy, occurrences, within, for, silence, labels and annotations. Default: the ready rules, which --show-rules prints."`
	ShowRules    bool          `env:"-" help:"Print the ready rules, to begin a file of your own with, and end."`
	Alertmanager []string      `placeholder:"URL" secret:"" help:"Base URLs of Alertmanager, with user and password where it wants them; all members of a cluster, as each gets every alert. --ca-file is for them too."`
	ConsoleURL   string        `name:"console-url" placeholder:"URL" help:"The console, for links in alerts. Default: /console/ of --server."`
	CursorFile   string        `default:"var/eventsvc-alerts/cursor.json" placeholder:"FILE" help:"Where the position in the history is kept, with the alerts that go on. It is for one server."`
	Wait         time.Duration `default:"24h" help:"How long an alert that is over waits for an Alertmanager, if none answers."`
	Try          bool          `env:"-" help:"Print what the rules would have sent, and end. No Alertmanager is needed."`
	Since        time.Duration `env:"-" placeholder:"DURATION" help:"With --try: how far back to look, such as 7d. Default: 24h."`
	ListenAdmin  string        `default:"127.0.0.1:8084" placeholder:"HOST:PORT" help:"Serve detailed probes and metrics here; empty: not at all."`
	Hosts        service.Hosts `embed:""`
	LogFormat    string        `default:"auto" enum:"auto,text,json" help:"auto, text or json; auto is text on a terminal."`
	LogLevel     string        `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
}

// Help is shown below the settings.
func (*alertsCmd) Help() string {
	return `Examples:

    eventsvc alerts --try --since 7d --server https://events.example --token-file token
    eventsvc alerts --alertmanager http://alertmanager-0:9093,http://alertmanager-1:9093 --server https://events.example \
        --token-url https://tokens.example/oauth2/token --client-id alerts --client-secret-file secret.txt

It needs get, list and watch of events. It can be killed at any time and then resumes: alerts of what happened meanwhile are sent
with their own times. Two with the same rules do no harm, as their alerts are the same.

Exit codes: 0 after a signal, 1 failure, 2 usage or a wrong rule. It waits for a server or Alertmanager that does not answer.`
}

func (a *alertsCmd) check() error {
	switch {
	case !a.Try && !a.ShowRules && len(a.Alertmanager) == 0:
		return cli.Usagef("--alertmanager is not set: give the URL of each Alertmanager, or --try to see what would be sent")
	case !a.Try && a.Since != 0 || a.Since < 0:
		return cli.Usagef("--since %s is for --try, and a time such as 7d", a.Since)
	case a.Wait < time.Minute:
		return cli.Usagef("--wait %s must be a minute at least", a.Wait)
	}
	for _, u := range append(slices.Clone(a.Alertmanager), cmp.Or(a.ConsoleURL, "http://none")) {
		if !bearer.IsURL(u) {
			return cli.Usagef("--alertmanager or --console-url %q is no http(s) URL, such as http://127.0.0.1:9093", u)
		}
	}
	if _, err := labels.Parse(a.Selector); err != nil {
		return cli.Usagef("--selector: %w", err)
	}
	return a.Hosts.Check()
}

// Run sends alerts until ctx ends.
func (a *alertsCmd) Run(ctx context.Context, std IO) error {
	if err := a.check(); err != nil {
		return err
	}
	if a.ShowRules {
		_, err := std.Out.Write(alerts.Ready)
		return err
	}
	log, err := service.Logger(std.Err, a.LogFormat, a.LogLevel)
	if err != nil {
		return err
	}
	registry := service.NewRegistry("eventsvc")
	rules, err := alerts.Parse(alerts.Ready)
	if err != nil {
		return err
	}
	inForce := func(next []*alerts.Rule) { rules = next }
	live, err := a.follow(log, registry, func(next []*alerts.Rule) { inForce(next) })
	if err != nil {
		return cli.Usagef("--rules: %w", err)
	}
	config, err := a.config()
	if err != nil {
		return err
	}
	source, err := a.source(config)
	if err != nil {
		return err
	}
	if a.Try {
		return a.try(ctx, std, source, rules)
	}
	if err := safefile.MkdirAll(filepath.Dir(a.CursorFile)); err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	c := alerts.Config{Source: source, Cursor: a.CursorFile, Wait: a.Wait, Log: log, Registry: registry}
	if c.To, err = a.targets(); err != nil {
		return err
	}
	watching, err := alerts.New(c, rules)
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	inForce = watching.Use
	health := &service.Health{}
	health.Add("alerts", watching.Ready)
	return service.Run(ctx, service.Config{
		HTTP: httpserver.Config{Name: "eventsvc", Log: log, Registry: registry, Endpoints: []httpserver.Endpoint{{
			Setting: "--listen-admin", Addr: a.ListenAdmin, OnListen: std.OnListen,
			Handler: a.Hosts.Guard(a.ListenAdmin, log, service.Admin(health, registry)),
		}}},
		Health: health, Tasks: []func(context.Context) error{watching.Run, live.Run},
	})
}

// follow reads the rules, and reads them again when their file is another.
func (a *alertsCmd) follow(log *slog.Logger, registry *prometheus.Registry, use func([]*alerts.Rule)) (*livefile.File, error) {
	return livefile.Open(livefile.Config{
		Path: a.Rules, MaxBytes: alerts.MaxFile, Metric: "eventsvc_rules", What: "rules", Log: log, Registry: registry,
		Apply: func(data []byte) error {
			next, err := alerts.Parse(data)
			if err == nil {
				use(next)
			}
			return err
		},
	})
}

// targets returns a client of each Alertmanager. None has the credentials for the server.
func (a *alertsCmd) targets() (all []*client.Client, err error) {
	for _, server := range a.Alertmanager {
		to, err := (&Connection{Server: server, CAFile: a.CAFile}).Open()
		if err != nil {
			return nil, err
		}
		all = append(all, to)
	}
	return all, nil
}

// source returns the events to look at.
func (a *alertsCmd) source(config client.Config) (alerts.Source, error) {
	c, err := dial(config)
	if err != nil {
		return alerts.Source{}, err
	}
	s := alerts.Source{Client: c, Path: client.EventsPath("events."+a.GroupDomain, a.Namespace), Query: url.Values{}}
	s.Console = strings.TrimSuffix(cmp.Or(a.ConsoleURL, strings.TrimSuffix(c.Server(), "/")+console.Folder), "/") + "/"
	if a.Selector != "" {
		s.Query.Set("labelSelector", a.Selector)
	}
	return s, nil
}

// try prints what the rules would have sent.
func (a *alertsCmd) try(ctx context.Context, std IO, source alerts.Source, rules []*alerts.Rule) error {
	since := cmp.Or(a.Since, 24*time.Hour)
	tried, err := alerts.Try(ctx, source, rules, time.Now().Add(-since))
	if err != nil {
		return at(source.Client, err)
	}
	w := tabwriter.NewWriter(std.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "STARTS\tENDS\tALERT\tSUMMARY")
	for _, t := range tried {
		ends, named := "goes on", t.Labels["alertname"]
		if !t.EndsAt.IsZero() {
			ends = t.EndsAt.Local().Format(time.DateTime)
		}
		for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
			if name != "alertname" {
				named += " " + name + "=" + t.Labels[name]
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.StartsAt.Local().Format(time.DateTime), ends, printable.OneLine(named), printable.OneLine(t.Annotations["summary"]))
	}
	fmt.Fprintf(w, "\n%d alerts of %d rules in %s\n", len(tried), len(rules), since)
	return w.Flush()
}
