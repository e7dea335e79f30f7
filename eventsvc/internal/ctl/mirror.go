package ctl

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/mirror"
	"tidings.example/eventsvc/internal/mirror/objectchange"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
)

// mirrorCmd copies a cluster's events into a server. Its connection is that to the server.
type mirrorCmd struct {
	Connection      `embed:""`
	Kubernetes      `embed:""`
	Namespace       []string      `short:"n" placeholder:"NAME" help:"Namespaces of the cluster. Default: all."`
	Cluster         string        `placeholder:"NAME" help:"Name of the cluster, which is part of the names of copies and their label; never change it."`
	ClusterLabel    string        `default:"cluster" placeholder:"KEY" help:"Label of copies with the name of the cluster; empty: none."`
	CursorNamespace string        `default:"kube-system" placeholder:"NAME" help:"Namespace of the server for the cursor: the event that holds the position of the mirror."`
	Enrich          []string      `default:"owner,labels,namespace" placeholder:"WHAT" help:"What copies tell of the objects that their events are about: owner (the Deployment, CronJob …, and the node), labels (the usual ones, such as app.kubernetes.io/name, and --copy-labels) and namespace (--namespace-labels); empty: nothing."`
	CopyLabels      []string      `placeholder:"KEY" help:"More labels of objects that copies get; with --namespace-labels 6 at most."`
	NamespaceLabels []string      `placeholder:"KEY" help:"Labels of namespaces that copies get, as namespace.tidings.example/KEY."`
	Changes         []string      `placeholder:"KIND" help:"Make events of what is changed in objects: workloads (Deployments, StatefulSets, DaemonSets, CronJobs, HorizontalPodAutoscalers, PodDisruptionBudgets, Services, Ingresses, NetworkPolicies, ConfigMaps, Secrets, Nodes, PersistentVolumeClaims), one of them, or another resource as kubectl api-resources has it, such as rollouts.argoproj.io."`
	ChangesState    string        `placeholder:"FILE" help:"File that keeps what was seen of the objects of --changes, so that a mirror that was away says what has changed meanwhile."`
	RulesFile       string        `placeholder:"FILE" help:"What is not copied: rules with drop; followed while running. A YAML list of name, where, namespaces, and drop or keep; the first rule that fits an event counts."`
	DryRunRules     bool          `env:"-" help:"Print what --rules-file would drop of the events of the last hour that the cluster still has, and end. No server is needed."`
	ListenAdmin     string        `default:"127.0.0.1:8082" placeholder:"HOST:PORT" help:"Serve detailed probes and metrics here; empty: not at all."`
	Hosts           service.Hosts `embed:""`
	LogFormat       string        `default:"auto" enum:"auto,text,json" help:"auto, text or json; auto is text on a terminal."`
	LogLevel        string        `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
}

// Help is shown below the settings.
func (*mirrorCmd) Help() string {
	return `Examples:

    eventsvc mirror --kubeconfig ~/.kube/config --cluster production --server https://events.example \
        --token-url https://tokens.example/oauth2/token --client-id mirror --client-secret-file secret.txt
    eventsvc get -A -l cluster=production --since 24h
    eventsvc mirror --kubeconfig ~/.kube/config --cluster production --rules-file rules.yaml --dry-run-rules

It needs these rights: in the cluster, get, list and watch of events, pods and namespaces, and get of other objects; on the
server, get, create and update of events. Without the rights on pods, namespaces and others, copies lack labels.
It can be killed at any time and then resumes. Two mirrors of one cluster do no harm. Events that the cluster deletes stay on
the server.

Exit codes: 0 after a signal, 1 failure, 2 usage. It waits for a cluster or server that does not answer.`
}

func (m *mirrorCmd) check() error {
	switch {
	case m.Cluster == "":
		return cli.Usagef("--cluster is not set: give the cluster a name, which tells its events from the events of other clusters")
	case len(validation.IsDNS1123Subdomain(m.Cluster)) > 0 || len(validation.IsValidLabelValue(m.Cluster)) > 0:
		return cli.Usagef("--cluster %q cannot be a label and a part of a name: use lower case letters, digits, - and .", m.Cluster)
	case m.ClusterLabel != "" && len(validation.IsQualifiedName(m.ClusterLabel)) > 0:
		return cli.Usagef("--cluster-label %q is no label key: %s", m.ClusterLabel, strings.Join(validation.IsQualifiedName(m.ClusterLabel), "; "))
	case m.CursorNamespace == "":
		return cli.Usagef("--cursor-namespace is empty: name a namespace of the server")
	case m.DryRunRules && m.RulesFile == "":
		return cli.Usagef("--dry-run-rules needs --rules-file: name the file to try")
	}
	if (len(m.Changes) == 0) != (m.ChangesState == "") {
		return cli.Usagef("--changes and --changes-state need each other: name the kinds of objects, and the file that keeps what was seen of them")
	}
	for _, name := range m.Changes {
		if err := mirror.CheckResource(name); err != nil {
			return cli.Usagef("--changes: %w", err)
		}
	}
	if _, err := m.enrichment(); err != nil {
		return err
	}
	return m.Hosts.Check()
}

// enrichment returns what is added to copies.
func (m *mirrorCmd) enrichment() (e mirror.Enrichment, err error) {
	e.CopyLabels, e.NamespaceLabels = m.CopyLabels, m.NamespaceLabels
	for _, what := range m.Enrich {
		switch what {
		case "":
		case "owner":
			e.Owner = true
		case "labels":
			e.Labels = true
		case "namespace":
			e.Namespace = true
		default:
			return e, cli.Usagef("--enrich %q is unknown: there are owner, labels and namespace", what)
		}
	}
	return e, m.checkChosen(e)
}

// checkChosen refuses keys of labels that cannot be copied, or would not be.
func (m *mirrorCmd) checkChosen(e mirror.Enrichment) error {
	for _, key := range m.CopyLabels {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return cli.Usagef("--copy-labels %q is no label key: %s", key, problems[0])
		}
	}
	for _, key := range m.NamespaceLabels {
		if _, err := mirror.NamespaceKey(key); err != nil {
			return cli.Usagef("--namespace-labels: %w", err)
		}
	}
	switch n := len(m.CopyLabels) + len(m.NamespaceLabels); {
	case n > mirror.MaxChosenLabels:
		return cli.Usagef("--copy-labels and --namespace-labels name %d labels: leave out some, they can be %d", n, mirror.MaxChosenLabels)
	case len(m.CopyLabels) > 0 && !e.Labels:
		return cli.Usagef("--copy-labels has no effect without labels in --enrich: set both or none")
	case len(m.NamespaceLabels) > 0 && !e.Namespace:
		return cli.Usagef("--namespace-labels has no effect without namespace in --enrich: set both or none")
	}
	return nil
}

// Run copies events until ctx ends.
func (m *mirrorCmd) Run(ctx context.Context, std IO) error {
	if err := m.check(); err != nil {
		return err
	}
	from, err := m.Kubernetes.config()
	if err != nil {
		return err
	}
	if m.DryRunRules {
		return m.try(ctx, std, from)
	}
	to, err := m.Connection.config()
	if err != nil {
		return err
	}
	if from.Server == to.Server {
		return cli.Usagef("--kubeconfig and --server are the same server, %s: it would copy its own copies for ever", to.Server)
	}
	log, err := service.Logger(std.Err, m.LogFormat, m.LogLevel)
	if err != nil {
		return err
	}
	source, err := dial(from)
	if err != nil {
		return err
	}
	target, err := dial(to)
	if err != nil {
		return err
	}
	enrich, err := m.enrichment()
	if err != nil {
		return err
	}
	registry := service.NewRegistry("eventsvc")
	live, changed, err := m.follow(log, registry)
	if err != nil {
		return err
	}
	objects, state, err := m.objects(ctx, source, log)
	if err != nil {
		return err
	}
	if state != nil {
		defer func() { _ = state.Close() }()
	}
	copying := mirror.New(mirror.Config{
		Source: source, Target: target, Cluster: m.Cluster, Label: m.ClusterLabel, Namespaces: m.Namespace,
		CursorNamespace: m.CursorNamespace, Version: service.Version(), Enrich: enrich,
		Changes: objects, State: state,
		Rules: live.Current, RulesChanged: changed, Log: log, Registry: registry,
	})
	health := &service.Health{}
	health.Add("mirror", copying.Ready)
	return service.Run(ctx, service.Config{
		HTTP: httpserver.Config{Name: "eventsvc", Log: log, Registry: registry, Endpoints: []httpserver.Endpoint{{
			Setting: "--listen-admin", Addr: m.ListenAdmin, OnListen: std.OnListen,
			Handler: m.Hosts.Guard(m.ListenAdmin, log, service.Admin(health, registry)),
		}}},
		Health: health, Tasks: []func(context.Context) error{copying.Run, live.Run},
	})
}

// follow reads the rules, and reads them again when their file is another. It tells when other rules are in force.
func (m *mirrorCmd) follow(log *slog.Logger, registry *prometheus.Registry) (*rules.Live, <-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	live, err := rules.NewLive(rules.Config{Path: m.RulesFile, Log: log, Registry: registry, Changed: func() {
		select {
		case changed <- struct{}{}:
		default: // the last change is not told yet
		}
	}})
	if err != nil {
		return nil, nil, cli.Usagef("--rules-file: %w", err)
	}
	return live, changed, nil
}

// objects returns the resources of --changes, and what was seen of their objects; nothing if there are none.
func (m *mirrorCmd) objects(ctx context.Context, source *client.Client, log *slog.Logger) ([]mirror.Resource, *objectchange.State, error) {
	if len(m.Changes) == 0 {
		return nil, nil, nil
	}
	state, err := objectchange.Open(m.ChangesState)
	if err != nil {
		return nil, nil, fmt.Errorf("--changes-state: %w", err)
	}
	objects, err := mirror.Resources(ctx, source, m.Changes, log)
	if err != nil {
		_ = state.Close()
		return nil, nil, fmt.Errorf("--changes: %w", err)
	}
	return objects, state, nil
}

// triedFor is the time before now of which --dry-run-rules looks at events.
const triedFor = time.Hour

// try prints what the rules would do to the events of the last hour.
func (m *mirrorCmd) try(ctx context.Context, std IO, from client.Config) error {
	text, err := os.ReadFile(m.RulesFile)
	if err != nil {
		return cli.Usagef("--rules-file: %w", err)
	}
	set, err := rules.Parse(text)
	if err != nil {
		return cli.Usagef("--rules-file %s: %w", m.RulesFile, err)
	}
	source, err := dial(from)
	if err != nil {
		return err
	}
	tried, err := mirror.Try(ctx, source, m.Namespace, m.Cluster, set, time.Now().Add(-triedFor))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(std.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tDOES\tEVENTS")
	dropped := 0
	for _, r := range set.All() {
		fmt.Fprintf(w, "%s\t%s\t%d\n", r.Name, r.String(), tried.By[r.Name])
		if r.Drop {
			dropped += tried.By[r.Name]
		}
	}
	fmt.Fprintf(w, "\nof %d events of the last hour, %d would be dropped\n", tried.Events, dropped)
	for _, warning := range set.Unreachable() {
		fmt.Fprintln(w, "warning: "+warning)
	}
	return w.Flush()
}
