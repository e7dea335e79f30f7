package bolt

import (
	"context"
	"time"
)

// bumpRevisions is how far a bump goes where the clock is behind the revisions:
// the amount that etcd's guide to disaster recovery uses, a week of 1,600 writes
// a second.
const bumpRevisions = 1_000_000_000

// Bumped returns a revision beyond all that a store may have given out after a
// known one: the microseconds since 1970. A store whose revisions began below
// them can only catch up by more than a million writes a second, so this holds
// without knowing how far the store has come, and each restore of one backup
// goes beyond those before. JSON readers that take numbers for float64 read these
// revisions exactly until the year 2255.
//
// A known revision that is ahead of the clock means that the clock is wrong, or
// was at the last bump.
func Bumped(known uint64, now time.Time) uint64 {
	if micros := now.UnixMicro(); micros > 0 && uint64(micros) > known {
		return uint64(micros)
	}
	return known + bumpRevisions
}

// BumpRevision continues, after a restore or an import, with revisions that no client can
// know: greater than those of this store, than a known one of another store whose events it
// takes over, and than what either may have given out since. It returns the revision that it has come
// to, which is also the new compact revision: watches, continue tokens and exact
// reads of older ones get an [*store.ExpiredError], so that clients list again.
// Watches that are open have missed nothing and go on. This is what
// etcdutl snapshot restore does with --bump-revision and --mark-compacted.
func (db *DB) BumpRevision(ctx context.Context, known uint64) (revision uint64, err error) {
	revision, err = db.committer.Skip(ctx, func(last uint64) uint64 { return Bumped(max(last, known), db.o.Now()) })
	if err != nil {
		return 0, err
	}
	db.o.Log.Info("revisions go on after a gap; clients that know older ones have to list again", "revision", revision)
	return revision, nil
}
