package bolt

import (
	"context"
	"slices"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Gaps implements [store.Timeline].
func (r *reader) Gaps(ctx context.Context, revision uint64, most int) (gaps []store.Gap, more bool, err error) {
	until, err := r.state(revision)
	if err != nil {
		return nil, false, err
	}
	err = r.View(func(v index.View, log *seglog.Reader) error {
		marked, err := v.Postings([]index.Term{index.Gaps})
		if err != nil {
			return err
		}
		after, _ := slices.BinarySearch(marked, until+1)
		marked = marked[:after]
		if more = len(marked) > most; more {
			marked = marked[len(marked)-most:]
		}
		for i, at := range slices.Backward(marked) {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			e, err := log.Get(at)
			if skipped(log, at, err) {
				continue
			}
			if err != nil {
				return err
			}
			gap, ok := event.Attributes(e.Attributes).Gap()
			if !ok || gap.Rule != "" || e.Kind == seglog.Deleted { // another term has the same hash
				continue
			}
			key := string(e.Key)
			newest, err := lastBefore(log, v, key, at, until)
			if err != nil {
				return err
			}
			if newest {
				gaps = append(gaps, store.Gap{Gap: gap, Namespace: key[:e.NamespaceLen], Revision: at})
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	return gaps, more, r.ended(until, err)
}
