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

// The mirror reports hours in which it did not watch a cluster as an Event with this reason
// and reporter. Its annotations say from when until when.
const (
	GapReason   = "MirrorGap"
	GapReporter = "tidings.example/mirror"
	GapFrom     = "mirror.tidings.example/gap-from"
	GapTo       = "mirror.tidings.example/gap-to"
)

// Gap is a time in which nobody watched a cluster.
type Gap struct {
	From, To time.Time
	Cluster  string
}

// maxGaps bounds the gaps of an answer.
const maxGaps = 1000

// FindGaps fills in the gaps that overlap the range, as far as they are reported in
// namespaces that the caller may look at.
func (s *Snapshot) FindGaps(ctx context.Context) error {
	// A gap is reported when it is over, which may be behind the end of the range.
	end := s.source.Now().Truncate(time.Second).Add(time.Hour)
	if s.To.After(end) {
		end = s.To
	}
	q := store.TimeQuery{
		Range:    store.Range{From: s.begin(), To: end},
		Selector: &event.Selector{Fields: []event.FieldRequirement{{Field: event.Reason, Value: GapReason}}},
		Wanted: func(d event.Dimensions) bool {
			return d.Reason == GapReason && d.Reporter == GapReporter && s.query.Allows(d.Namespace)
		},
	}
	found := map[Gap]bool{}
	err := s.pages(ctx, q, func(v *store.View, _ store.Moment) (bool, error) {
		gap, ok, err := s.source.Gap(v)
		if ok && gap.From.Before(s.To) && gap.To.After(s.From) {
			found[gap] = true
		}
		return len(found) < maxGaps, err
	}, func(Next) (bool, error) { return true, nil })
	if len(found) >= maxGaps {
		s.Partly("there are more than %d gaps", maxGaps)
	}
	s.Gaps = slices.SortedFunc(maps.Keys(found), func(a, b Gap) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), cmp.Compare(a.Cluster, b.Cluster))
	})
	return err
}
