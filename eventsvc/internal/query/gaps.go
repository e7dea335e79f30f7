package query

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// maxGaps is how many reports of gaps an answer looks at, which takes a millisecond or two.
const maxGaps = 256

// FindGaps fills in the gaps that overlap the range, as far as they are reported in
// namespaces that the caller may look at. It looks at the newest reports that the server
// believes.
func (s *Snapshot) FindGaps(ctx context.Context) error {
	var reported []store.Gap
	var more bool
	err := s.reading(func() (err error) {
		reported, more, err = s.source.Timeline.Gaps(ctx, s.held, maxGaps)
		return err
	})
	if err != nil {
		return err
	}
	if more {
		s.Partly("only the newest %d reports of gaps were looked at, there are more", maxGaps)
	}
	found := map[event.Gap]bool{}
	for _, g := range reported {
		if g.Revision <= s.Head.Revision && s.query.Allows(g.Namespace) && g.From.Before(s.To) && g.To.After(s.From) {
			found[g.Gap] = true
		}
	}
	s.Gaps = slices.SortedFunc(maps.Keys(found), func(a, b event.Gap) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), cmp.Compare(a.Cluster, b.Cluster))
	})
	return nil
}
