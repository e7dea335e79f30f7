package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// indexRecords is how many records of the head are indexed in one transaction, between two
// commits.
const indexRecords = 512

// Index indexes by time what an older program has written: the head in short transactions,
// and sealed segments by writing them again, the newest first. Readers and writers go on. It
// can be cut short, and goes on from there when it is called again.
func (m *Maintenance) Index(ctx context.Context) error {
	done, all := m.Records.Log.Segments().Indexed()
	if done == all {
		return nil
	}
	m.Log.Info("indexing by time what an earlier release has written; until then answers about what happened are partial", "files", all-done)
	for more := true; more; {
		var err error
		if more, err = m.indexNext(ctx); err != nil {
			return err
		}
		done, all := m.Records.Log.Segments().Indexed()
		m.Log.Info("indexing by time", "done", done, "files", all)
	}
	return nil
}

// indexNext indexes the newest segment that is not, and reports whether there are more.
func (m *Maintenance) indexNext(ctx context.Context) (more bool, err error) {
	defer m.Pause()()
	if err := m.compaction.indexHead(ctx); err != nil {
		return false, err
	}
	left := slices.DeleteFunc(slices.Clone(m.compaction.sealed()), (*seglog.Segment).Indexed)
	if len(left) == 0 {
		return false, nil
	}
	s := left.Head()
	if err := m.compaction.rewrite(ctx, s, false, s.Compressed); err != nil {
		return false, fmt.Errorf("store: indexing %s by time: %w", s.Path, err)
	}
	m.Usage.Measure()
	return len(left) > 1, nil
}

// indexHead indexes the head, if an older program has written to it.
func (c *compaction) indexHead(ctx context.Context) error {
	for more := true; more; {
		err := c.Do(ctx, func() (err error) {
			more, err = c.Writer.IndexHead(indexRecords)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runIndex runs Index until it has succeeded or ctx ends.
func (m *Maintenance) runIndex(ctx context.Context) {
	for {
		err := m.Index(ctx)
		if err == nil || errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
			return
		}
		m.failures.Inc()
		m.Log.Error("what an earlier release has written could not be indexed by time; trying again", "error", err)
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
	}
}
