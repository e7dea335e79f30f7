package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
)

// The index is written anew when it has so much empty, and more than half, or
// when the terms of so many versions that are gone are in it.
const (
	indexFreeBytes  = 16 << 20
	indexStaleTerms = 100_000
)

// compactIndex writes the index anew if that is worth it.
func (db *DB) compactIndex(ctx context.Context) error {
	file := db.index.db.Load()
	stats := file.Stats()
	free := int64(stats.FreePageN+stats.PendingPageN) * int64(file.Info().PageSize)
	if (free < indexFreeBytes || free < disk.Usage(db.index.path)/2) && db.staleTerms < max(indexStaleTerms, db.live.events.Load()) {
		return nil
	}
	return db.rewriteIndex(ctx)
}

// rewriteIndex copies the index into a new file, without its empty pages and
// without the terms of versions that are gone. Merges wait meanwhile; reads and
// writes do not.
func (db *DB) rewriteIndex(ctx context.Context) error {
	db.merging.Lock()
	defer db.merging.Unlock()
	held, err := db.heldRevisions(ctx)
	if err != nil {
		return err
	}
	id, err := db.index.storeID()
	if err != nil {
		return err
	}
	tmp := db.index.path + ".tmp"
	to, err := boltfile.Create(tmp, 0, []string{bucketKeys, bucketTerms}, map[string][]byte{boltfile.StoreID: id})
	if err != nil {
		return err
	}
	to.NoSync = true
	err = db.index.view(func(from *bbolt.Tx) error {
		return errors.Join(
			boltfile.CopyBucket(ctx, from, to, boltfile.Meta, nil),
			boltfile.CopyBucket(ctx, from, to, bucketKeys, nil),
			copyTerms(ctx, from, to, held))
	})
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return fmt.Errorf("store: compacting %s: %w", db.index.path, errors.Join(err, os.Remove(tmp)))
	}
	db.staleTerms = 0
	return db.index.replace(tmp)
}

// replace puts a new file in the place of the index.
func (x *index) replace(path string) error {
	db, err := boltfile.OpenUnchecked(path, indexMmap)
	if err != nil {
		return err
	}
	if err := os.Rename(path, x.path); err != nil {
		return errors.Join(err, db.Close())
	}
	old := x.db.Swap(db)
	x.failed.Store(false)
	return errors.Join(old.Close(), disk.SyncDir(filepath.Dir(x.path)))
}

func copyTerms(ctx context.Context, from *bbolt.Tx, to *bbolt.DB, held revisionSet) error {
	return boltfile.CopyBucket(ctx, from, to, bucketTerms, func(k, v []byte) ([]byte, []byte, error) {
		if len(k) != 16 {
			return nil, nil, fmt.Errorf("%q is no key of a term: %w", k, boltfile.ErrChecksum)
		}
		t := term(be.Uint64(k))
		revisions, err := parseRun(nil, t, v)
		if err != nil {
			return nil, nil, err
		}
		kept := revisions[:0]
		for _, r := range revisions {
			if held.has(r) {
				kept = append(kept, r)
			}
		}
		if len(kept) == 0 {
			return nil, nil, nil
		}
		return runKey(t, kept[len(kept)-1]), appendRun(nil, t, kept), nil
	})
}

// A revisionSet has one bit for each revision, in pages for the ranges that have
// any: [DB.BumpRevision] leaves gaps that are far too long for one.
type revisionSet map[uint64]*[revisionPage / 64]uint64

const revisionPage = 1 << 16

func (s revisionSet) add(r uint64) {
	page := s[r/revisionPage]
	if page == nil {
		page = new([revisionPage / 64]uint64)
		s[r/revisionPage] = page
	}
	page[r%revisionPage/64] |= 1 << (r % 64)
}

func (s revisionSet) has(r uint64) bool {
	page := s[r/revisionPage]
	return page != nil && page[r%revisionPage/64]&(1<<(r%64)) != 0
}

// heldRevisions returns which revisions the log has up to the last merge.
func (db *DB) heldRevisions(ctx context.Context) (revisionSet, error) {
	last := db.index.merged.Load()
	pending := *db.pending.Load() // before the segments, see [logReader.open]
	ss := *db.segments.Load()
	set := revisionSet{}
	for _, s := range ss {
		err := s.view(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte(bucketLog)).Cursor()
			for k, _ := c.First(); k != nil; k, _ = c.Next() {
				revision, err := revisionOf(k)
				if err != nil {
					return err
				}
				if revision > last {
					break
				}
				set.add(revision)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	for _, l := range pending {
		if l.Revision <= last {
			set.add(l.Revision)
		}
	}
	return set, nil
}
