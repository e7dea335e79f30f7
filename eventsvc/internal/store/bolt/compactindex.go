package bolt

import (
	"context"

	"tidings.example/eventsvc/internal/store/index"
)

// compactIndex writes the index to a new file if that is worth it.
func (m *maintenance) compactIndex(ctx context.Context) error {
	if !m.db.index.NeedsRewrite(m.db.live.events.Load()) {
		return nil
	}
	return m.rewriteIndex(ctx)
}

// rewriteIndex writes the index to a new file.
func (m *maintenance) rewriteIndex(ctx context.Context) error {
	return m.db.index.Rewrite(ctx, func(last uint64) (index.Revisions, error) {
		set := index.Revisions{}
		return set, m.db.log.Revisions(ctx, last, set.Add)
	})
}
