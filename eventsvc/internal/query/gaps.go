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
	isGap := func(d event.Dimensions) bool {
		return d.Reason == GapReason && d.Reporter == GapReporter && s.query.Allows(d.Namespace)
	}
	group := func(d event.Dimensions) int {
		if isGap(d) {
			return 0
		}
		return -1
	}
	// A gap is reported when it is over, which may be behind the end of the range.
	end := s.source.Now().Truncate(time.Second).Add(time.Hour)
	if s.To.After(end) {
		end = s.To
	}
	var seconds map[int64]bool
	err := s.reading(func() error {
		seconds = map[int64]bool{}
		return s.occurrences(ctx, s.begin(), end, group, func(o store.Occurred) { seconds[o.Second] = true })
	})
	if err != nil {
		return err
	}
	found := map[Gap]bool{}
	for _, second := range slices.Sorted(maps.Keys(seconds)) {
		if len(found) >= maxGaps {
			s.Partly("there are more than %d gaps", maxGaps)
			break
		}
		if err := s.gapsAt(ctx, second, isGap, found); err != nil {
			return err
		}
	}
	s.Gaps = slices.SortedFunc(maps.Keys(found), func(a, b Gap) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), cmp.Compare(a.Cluster, b.Cluster))
	})
	return nil
}

// gapsAt adds the gaps that were reported within a second and overlap the range.
func (s *Snapshot) gapsAt(ctx context.Context, second int64, isGap func(event.Dimensions) bool, found map[Gap]bool) error {
	q := store.TimeQuery{Range: within(second), Wanted: isGap}
	return s.pages(ctx, q, func(v *store.View, _ store.Moment) (bool, error) {
		gap, ok, err := s.source.Gap(v)
		if ok && gap.From.Before(s.To) && gap.To.After(s.From) {
			found[gap] = true
		}
		return len(found) < maxGaps, err
	}, nil)
}

// within is the range of one second.
func within(second int64) store.Range {
	from := time.Unix(second, 0).UTC()
	return store.Range{From: from, To: from.Add(time.Second)}
}
