package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// maxGaps is how many reports of gaps an answer looks at, which takes a millisecond or two. It looks at more, up to
// maxHiddenGaps, if the caller may not see some of them: on a hub, all of the newest may be about other clusters.
const (
	maxGaps       = 256
	maxHiddenGaps = 16 * maxGaps
)

// maxDrops is how many reports of what rules dropped an answer looks at: one for each rule and hour.
const maxDrops = 4096

// dropHour is the time of which such a report speaks.
const dropHour = time.Hour

// FindGaps fills in the gaps that overlap the range, as far as they are reported in
// namespaces, and about clusters, that the caller may look at. It looks at the newest reports that the server
// believes.
func (s *Snapshot) FindGaps(ctx context.Context) error {
	var seen []store.Gap
	for most, more := maxGaps, true; more; most *= 4 {
		var reported []store.Gap
		err := s.reading(func() (err error) {
			reported, more, err = s.querier.Timeline.Gaps(ctx, s.held, most)
			return err
		})
		if err != nil {
			return err
		}
		seen = seen[:0]
		for _, g := range reported {
			if s.query.Allows(g.Namespace, g.Cluster) {
				seen = append(seen, g)
			}
		}
		if more && (len(seen) == len(reported) || len(seen) >= maxGaps || most == maxHiddenGaps) {
			s.Partly("only the newest %d reports of gaps were looked at, there are more", most)
			break
		}
	}
	found := map[event.Gap]bool{}
	for _, g := range seen {
		if g.Revision <= s.Head.Revision && g.From.Before(s.To) && g.To.After(s.From) {
			found[g.Gap] = true
		}
	}
	s.Gaps = slices.SortedFunc(maps.Keys(found), compareGaps)
	return nil
}

func compareGaps(a, b event.Gap) int {
	return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Rule, b.Rule))
}

// FindDropped fills in what rules dropped in hours that overlap the range, as far as that is
// reported in namespaces that the caller may look at, by reports that the server believes. It
// looks at the newest ones, in one page of the timeline.
func (s *Snapshot) FindDropped(ctx context.Context) error {
	type rule struct{ cluster, name string }
	found := map[rule]event.Gap{}
	looked, more := 0, false
	q := store.TimeQuery{
		Range:    store.Range{From: s.From.Add(-dropHour), To: s.To.Add(dropHour), Sees: s.sees}, // a report was last observed within its hour
		Wanted:   s.sees,
		Selector: &event.Selector{Dropped: true, Fields: []event.FieldRequirement{{Field: event.Reason, Value: event.DroppedReason}}},
	}
	err := s.reading(func() error {
		clear(found)
		looked, q.Revision = 0, s.held
		page, err := s.querier.Timeline.Observed(ctx, q, func(v *store.View, at store.Moment) bool {
			looked++
			g, _ := v.Attributes.Gap()
			if at.Revision > s.Head.Revision || !g.From.Before(s.To) || !g.To.After(s.From) {
				return looked < maxDrops
			}
			key := rule{g.Cluster, g.Rule}
			if before, ok := found[key]; ok {
				g.From, g.To, g.Count = earlier(g.From, before.From), later(g.To, before.To), before.Count+g.Count
			}
			found[key] = g
			return looked < maxDrops
		})
		more = page.More
		return err
	})
	if err != nil {
		return err
	}
	if more {
		s.Partly("only the newest reports of what rules dropped were looked at, there are more")
	}
	s.Dropped = slices.SortedFunc(maps.Values(found), compareGaps)
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
