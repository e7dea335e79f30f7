package ctl

import (
	"net/url"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/cli"
)

// filters are a server and which of its events a command is about. Its lists and watches evaluate the selectors.
type filters struct {
	access              `embed:""`
	Namespace           string        `env:"-" short:"n" placeholder:"NAME" help:"The namespace. Default: the namespace of the kubeconfig's context, or default."`
	AllNamespaces       bool          `env:"-" short:"A" help:"All namespaces."`
	Type                string        `env:"-" placeholder:"TYPE" help:"Only events of this type, such as Warning."`
	Reason              string        `env:"-" placeholder:"REASON" help:"Only events with this reason."`
	Regarding           string        `env:"-" placeholder:"KIND/NAME" help:"Only events about this object; KIND alone: about any of the kind."`
	ReportingController string        `env:"-" placeholder:"NAME" help:"Only events that this controller reports."`
	Selector            string        `env:"-" short:"l" placeholder:"SELECTOR" help:"Only events with these labels, such as app=web,tier!=test."`
	FieldSelector       string        `env:"-" placeholder:"SELECTOR" help:"Only events with these fields, such as regarding.uid=... or reason!=Pulled."`
	Since               time.Duration `env:"-" placeholder:"DURATION" help:"Only events that were observed within this time before now, such as 30m or 7d."`
	Terms               []string      `arg:"" optional:"" name:"term" help:"What to search for: words, field:value, field!=value, OR, NOT and parentheses, as in query. After --, a minus before a term leaves out what fits it."`

	search string // of Terms
}

// check returns an error for filters that contradict each other or cannot be parsed.
func (f *filters) check() (err error) {
	if f.AllNamespaces && f.Namespace != "" {
		return cli.Usagef("--namespace and --all-namespaces exclude each other: set one of them")
	}
	if f.Since < 0 {
		return cli.Usagef("--since %s is negative: set a duration such as 30m", f.Since)
	}
	for _, filter := range []struct{ name, value string }{
		{"namespace", f.Namespace}, {"type", f.Type}, {"reason", f.Reason}, {"regarding", f.Regarding},
		{"reporting-controller", f.ReportingController}, {"field-selector", f.FieldSelector},
	} {
		if strings.Contains(filter.value, "*") {
			return cli.Usagef("--%s %q: * is no pattern here, because lists of Kubernetes compare whole values: search for a term such as name:web-*", filter.name, filter.value)
		}
	}
	if _, err := labels.Parse(f.Selector); err != nil {
		return cli.Usagef("--selector: %w", err)
	}
	if _, err := fields.ParseSelector(f.FieldSelector); err != nil {
		return cli.Usagef("--field-selector: %w", err)
	}
	f.search, err = searchOf(f.Terms)
	return err
}

// path returns the path of the events; fallback is the namespace if none is given.
func (f *filters) path(fallback string) string {
	namespace := f.Namespace
	switch {
	case f.AllNamespaces:
		namespace = ""
	case namespace == "":
		namespace = fallback
	}
	return client.EventsPath("events."+f.GroupDomain, namespace)
}

// query returns the selectors as query parameters.
func (f *filters) query() url.Values {
	kind, name, _ := strings.Cut(f.Regarding, "/")
	var terms []string
	for _, term := range []struct{ field, value string }{
		{"type", f.Type}, {"reason", f.Reason}, {"regarding.kind", kind}, {"regarding.name", name},
		{"reportingController", f.ReportingController},
	} {
		if term.value != "" {
			terms = append(terms, term.field+"="+fields.EscapeValue(term.value))
		}
	}
	if f.FieldSelector != "" {
		terms = append(terms, f.FieldSelector)
	}
	q := url.Values{}
	if len(terms) > 0 {
		q.Set("fieldSelector", strings.Join(terms, ","))
	}
	if f.Selector != "" {
		q.Set("labelSelector", f.Selector)
	}
	return q
}

// lastSeen returns the time at which an event counts: its last occurrence or, if that is not credible, its creation. A
// client knows no more of the write.
func lastSeen(ev *eventsv1.Event) time.Time {
	if at := event.LastSeen(ev); event.Credible(at, time.Now()) {
		return at
	}
	return ev.CreationTimestamp.Time
}
