package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/shared/safefile"
)

// The file is written again when it has so much empty, and more than half, or when so many keys were merged since, and
// half of the events: merges leave entries and pages that are not full.
const (
	rewriteFree  = 16 << 20
	rewriteLoose = 100_000
)

// NeedsRewrite reports whether [Index.Rewrite] is worth its work, with so many events.
func (x *Index) NeedsRewrite(events int64) bool {
	if x.loose.Load() >= max(rewriteLoose, events/2) {
		return true
	}
	free := x.free()
	return free >= rewriteFree && free >= disk.Usage(x.path)/2
}

// free returns how many bytes of the file are empty, 0 once the file is closed. It reads in a transaction, because a
// caller such as a scrape of metrics does not know when the file is replaced.
func (x *Index) free() (n int64) {
	_ = x.view(func(tx *bbolt.Tx) error {
		stats := tx.DB().Stats()
		n = int64(stats.FreePageN+stats.PendingPageN) * int64(tx.DB().Info().PageSize)
		return nil
	})
	return n
}

// RewriteBytes returns how much room [Index.Rewrite] needs at most.
func (x *Index) RewriteBytes() int64 { return disk.Usage(x.path) - x.free() }

// Rewrite copies the index to a new file, without empty pages and without the keys of events that were deleted up to
// the compact revision, and takes that file into use. Merges wait meanwhile; reads and Put do not.
func (x *Index) Rewrite(ctx context.Context, compactRevision uint64) error {
	x.merging.Lock()
	defer x.merging.Unlock()
	x.rewriting.Store(true)
	defer x.rewriting.Store(false)
	tmp := x.path + ".tmp"
	err := boltfile.Write(tmp, 0, buckets(), map[string][]byte{boltfile.StoreID: []byte(x.StoreID)}, func(to *bbolt.DB) error {
		return x.view(func(from *bbolt.Tx) error {
			return errors.Join(
				boltfile.CopyBucket(ctx, from, to, boltfile.Meta, nil),
				copyKeys(ctx, from, to, compactRevision),
				to.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(boltfile.Meta)).Delete([]byte(metaLoose)) }))
		})
	})
	if err != nil {
		return fmt.Errorf("store: compacting %s: %w", x.path, errors.Join(err, disk.Remove(tmp)))
	}
	x.loose.Store(0)
	return x.replace(tmp)
}

// Rewriting reports whether a Rewrite makes merges wait, which may take half a minute for ten million events.
func (x *Index) Rewriting() bool { return x.rewriting.Load() }

// replace puts a new file in the place of the index.
func (x *Index) replace(path string) error {
	db, err := boltfile.OpenUnchecked(path, mmap)
	if err != nil {
		return err
	}
	size := disk.Usage(x.path)
	if err := os.Rename(path, x.path); err != nil {
		return errors.Join(err, db.Close())
	}
	x.file.Swap(&file{db, boltfile.NewReaders(db.Close)}).Unlinked(size, &x.unlinked)
	return safefile.Sync(filepath.Dir(x.path))
}

// Revisions is a set of revisions. It has a bit for each one, in pages for the ranges
// that have any, because there may be very long gaps between revisions.
type Revisions map[uint64]*[revisionPage / 64]uint64

const revisionPage = 1 << 12

// Add adds revisions, fastest if they are in order.
func (s Revisions) Add(all ...uint64) {
	var page *[revisionPage / 64]uint64
	at := uint64(0)
	for _, r := range all {
		if page == nil || at != r/revisionPage {
			at = r / revisionPage
			if page = s[at]; page == nil {
				page = new([revisionPage / 64]uint64)
				s[at] = page
			}
		}
		page[r%revisionPage/64] |= 1 << (r % 64)
	}
}

// Has reports whether a revision is in the set.
func (s Revisions) Has(r uint64) bool {
	page := s[r/revisionPage]
	return page != nil && page[r%revisionPage/64]&(1<<(r%64)) != 0
}
