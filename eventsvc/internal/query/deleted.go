package query

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Deletion is the last version of an event that somebody has deleted, under the revision of the deletion.
type Deletion struct {
	store.Record
	At store.Moment // of the deletion
	By []byte       // who deleted it
}

// Deleted returns the events that somebody has deleted within the range, in the order of the deletions, as far as they
// are held and wanted. An event that is there again in the state of the snapshot is left out; so is an earlier deletion
// of one that was deleted twice. What has expired was deleted by nobody.
func (s *Snapshot) Deleted(ctx context.Context, p ObjectPage) (found []Deletion, next Next, err error) {
	next.After = p.After
	for i := range s.query.Terms.dimensions {
		if s.query.Terms.dimensions[i].dimension == Pattern {
			return nil, next, invalid("fieldSelector", "pattern is no field of deletions: leave it out")
		}
	}
	size := 0
	wanted := s.wants()
	q := store.DeletionQuery{From: s.From, To: s.To, After: p.After.Revision, Until: s.Head.Revision}
	err = s.querier.Timeline.Deletions(ctx, q, func(v *store.View, by []byte) bool {
		if !wanted(v) {
			return true
		}
		if next.More = len(found) >= p.Limit || size >= p.Bytes; next.More {
			return false
		}
		found = append(found, Deletion{v.Clone(), store.Moment{Time: v.Time.UTC().Truncate(time.Microsecond), Revision: v.Revision}, by})
		size += len(v.Value)
		return true
	})
	if err != nil {
		return nil, next, err
	}
	gone := found[:0]
	for i := range found {
		next.After = found[i].At
		back, err := s.back(ctx, found[i].Record.View())
		if err != nil {
			return nil, next, err
		}
		if !back {
			gone = append(gone, found[i])
		}
	}
	return gone, next, nil
}

// back reports whether an event exists again in the state of the snapshot, or was deleted again: under its name or, if
// another one had taken that, under the one that an import gives it beside.
func (s *Snapshot) back(ctx context.Context, deleted *store.View) (back bool, err error) {
	origin, err := s.querier.Origin(deleted)
	if err != nil {
		return false, err
	}
	cluster := event.DimensionsOf(deleted.Namespace, deleted.Attributes).Cluster
	for _, name := range []string{deleted.Name, event.CopyName(cluster, deleted.Name, types.UID(origin))} {
		selector := &event.Selector{Fields: []event.FieldRequirement{
			{Field: event.FieldNamespace, Value: deleted.Namespace}, {Field: event.FieldName, Value: name},
		}}
		failed := s.querier.Timeline.Versions(ctx, selector, func(v *store.View, _ bool) bool {
			if v.Revision > deleted.Revision && v.Revision <= s.Head.Revision && err == nil {
				var of string
				of, err = s.querier.Origin(v)
				back = of == origin
			}
			return !back && err == nil
		})
		if err = cmp.Or(failed, err); back || err != nil {
			break
		}
	}
	return back, err
}
