package bolt

import (
	"context"
	"slices"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Gaps implements [store.Timeline].
func (r *reader) Gaps(ctx context.Context, revision uint64, most int) (gaps []store.Gap, more bool, err error) {
	until, err := r.state(revision)
	if err != nil {
		return nil, false, err
	}
	err = r.Log.View(func(log *seglog.Reader) error {
		turns := r.turns(ctx, log)
		chunks, err := turns.search(versions(&event.Filter{Kind: event.FilterGap}, until))
		if err != nil {
			return err
		}
		var marked []uint64
		err = turns.each(chunks, func(some []uint64) error {
			marked = append(marked, some...)
			return nil
		})
		if err != nil {
			return err
		}
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
			gap, _ := event.Attributes(e.Attributes).Gap()
			key := string(e.Key)
			newest, err := lastBefore(log, r.Index, key, at, until)
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
