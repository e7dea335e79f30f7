package events

import (
	"context"

	"github.com/labstack/echo/v4"
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/policy/pattern"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// A writer says what is believed of a write.
type writer struct {
	may        access.Grant
	deleter    []byte       // who it is; set by remover
	everywhere pattern.List // clusters of which it may create events in every namespace, and whose mirrors it may speak for
	whole      bool         // has sent the whole event, and not a change of one
}

// writer returns the writer of a request.
func (r *Resource) writer(c echo.Context, may access.Grant, whole bool) writer {
	w := writer{may: may, whole: whole}
	if caller, ok := bearer.FromContext(c.Request().Context()); ok {
		w.everywhere = r.Guard.Policy().Decide(caller, policy.Create, policy.AllNamespaces).Clusters
	}
	return w
}

// remover returns the writer of a request that may delete events, which are stored with who it is.
func (r *Resource) remover(c echo.Context, may access.Grant, whole bool) writer {
	w := r.writer(c, may, whole)
	d := codec.Deleter{Audit: c.Response().Header().Get("Audit-Id")}
	if caller, ok := bearer.FromContext(c.Request().Context()); ok {
		d.User, d.Client = httpserver.Shorten(caller.Subject), httpserver.Shorten(caller.ClientID)
	}
	w.deleter = d.Stored()
	return w
}

// believes reports whether a version that is the report of a mirror is marked. The mark belongs to what the event
// reports: a write that leaves that as it is leaves the mark as it is, whoever makes it, but for a writer who may
// create everywhere and sends the whole event. Any other write is believed if its writer is.
func (w writer) believes(report event.Report, live *eventsv1.Event, current *store.Record) bool {
	if live != nil {
		marked := current.Attributes.Believed()
		if before, ok := event.ReportOf(live); ok && before == report && (marked || !w.whole) {
			return marked
		}
	}
	return w.everywhere.Match(report.Cluster())
}

// draft makes the stored form of the next version of an event, of which live is the current one, nil if there is none.
// It marks the report of a mirror that is believed. What was counted of a mirror's copy before it was deleted is not
// counted again. An event of a cluster that the writer may not write is a 403.
func (r *Resource) draft(ctx context.Context, w writer, next, live *eventsv1.Event, current *store.Record) (store.Draft, error) {
	if err := w.may.MayStore(next.Name, next.Labels[event.ClusterLabel]); err != nil {
		return store.Draft{}, err
	}
	d, err := r.Codec.Draft(next)
	if err != nil {
		return d, err
	}
	if report, ok := event.ReportOf(next); ok && w.believes(report, live, current) {
		d.Attributes = d.Attributes.WithReport(report)
	}
	if _, copied := next.Annotations[event.SourceUID]; copied && live == nil {
		key := store.Key{Namespace: next.Namespace, Name: next.Name}
		return store.Resume(ctx, r.Timeline, key, d, event.Origin(next), codec.Origin)
	}
	return d, nil
}
