package maintenance

import (
	"context"
	"fmt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
)

// Dropped is what [Maintenance.DropDamaged] has dropped.
type Dropped struct {
	Damage []string // of records, with their revisions
	Events []string // whose newest version was damaged: "namespace/name"
}

// maxDamage bounds the revisions that one damage is taken to have records of.
const maxDamage = 1 << 20

// DropDamaged rewrites all segments without the records that cannot be read, and
// returns what it has dropped. An event whose newest version is dropped goes with all of its
// versions, so that none of them comes back as the present one. The history is given up, because
// it has a gap: watches and lists of older revisions are answered that they are too old.
//
// The index still leads to what was dropped. The caller removes it, so that it is made again.
// If DropDamaged is interrupted, it can be called again. Progress counts files.
func (m *Maintenance) DropDamaged(ctx context.Context, progress store.Progress) (d Dropped, err error) {
	defer m.Pause()()
	if err := m.Flush(ctx); err != nil {
		return d, err
	}
	err = m.Do(ctx, func() error {
		if m.Records.Log.Head().Bytes() > 0 {
			if err := m.Writer.Rotate(); err != nil {
				return err
			}
		}
		return m.Writer.MoveCompactRevision(m.Records.Log.Published())
	})
	if err != nil {
		return d, err
	}
	revisions := index.Revisions{}
	c := compaction{Config: &m.Config, drop: func(first, last uint64, damage error) {
		d.Damage = append(d.Damage, damage.Error())
		for r := first; r <= min(last, first+maxDamage); r++ {
			revisions.Add(r)
		}
	}}
	ss := c.sealed()
	for i, s := range ss {
		progress.Tell(int64(i), int64(len(ss)))
		if err := c.rewrite(ctx, s, true, s.Compressed); err != nil {
			return d, fmt.Errorf("store: rewriting %s: %w", s.Path, err)
		}
	}
	err = m.Records.Index.View(func(v index.View) error {
		for it := v.Iterate("", ""); it.Valid(); it.Next() {
			if p := it.Pointer(); it.Err() == nil && !p.Deletion() && revisions.Has(p.Revision()) {
				d.Events = append(d.Events, string(it.Key()))
			}
		}
		return nil
	})
	return d, err
}
