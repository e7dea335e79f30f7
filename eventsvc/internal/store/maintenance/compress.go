package maintenance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidings.example/eventsvc/internal/store/seglog"
)

// compressFor is how long a round begins to compress further segments, so that the compression
// of an old store takes about a fifth of a processor, and expiry is not late. Rounds that are
// hurried take more, and where room is tight there is no limit.
const compressFor = every / 4

// compressWhile compresses segments whose events are older than an age, one after the other by revision, as
// long as goOn reports true.
func (m *Maintenance) compressWhile(ctx context.Context, age time.Duration, goOn func() bool) error {
	if m.Policy.CompressAfter == 0 {
		return nil
	}
	for goOn() {
		s, err := m.compaction.nextOld(m.Clock.Now().Add(-age))
		if err != nil || s == nil {
			return err
		}
		if err := m.compaction.convert(ctx, s, false, true); errors.Is(err, errNoRoom) {
			return nil // until the next round has made some
		} else if err != nil {
			return err
		}
	}
	return nil
}

// nextOld returns the first segment that is not compressed, and whose events are all from before a time. A later
// segment may have older events, which were imported.
func (c *compaction) nextOld(before time.Time) (*seglog.Segment, error) {
	for _, s := range c.sealed() {
		if s.Compressed {
			continue
		}
		newest, ok, err := seglog.NewestTime(s)
		if err != nil {
			return nil, fmt.Errorf("store: compressing %s: %w", s.Path, err)
		}
		if ok && newest.Before(before) {
			return s, nil
		}
	}
	return nil, nil
}

// convert rewrites a segment, compressed or not.
func (c *compaction) convert(ctx context.Context, s *seglog.Segment, clean, compress bool) error {
	if err := c.rewrite(ctx, s, clean, compress); err != nil {
		return fmt.Errorf("store: rewriting %s: %w", s.Path, err)
	}
	return nil
}
