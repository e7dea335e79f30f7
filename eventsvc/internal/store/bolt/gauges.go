package bolt

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
)

// openReads counts the read transactions that are open by the second in which
// they began, because a forgotten one keeps every page that is given up from
// being used again. It is a ring: one that is open for longer than it is long
// seems younger.
type openReads struct {
	began   time.Time
	seconds [1024]atomic.Int32
}

// begin counts a transaction in, at what it returns; there it is counted out.
func (o *openReads) begin() *atomic.Int32 {
	second := &o.seconds[int(time.Since(o.began).Seconds())%len(o.seconds)]
	second.Add(1)
	return second
}

// oldest is the age of the transaction that is open for longest, 0 if there is
// none from before this second.
func (o *openReads) oldest() time.Duration {
	now := int(time.Since(o.began).Seconds())
	for age := min(now, len(o.seconds)-1); age > 0; age-- {
		if o.seconds[(now-age)%len(o.seconds)].Load() > 0 {
			return time.Duration(age) * time.Second
		}
	}
	return 0
}

// fileStats sums up what bbolt says of the files.
func (db *DB) fileStats() (sum bbolt.Stats) {
	add := func(s bbolt.Stats) {
		sum.FreePageN += s.FreePageN
		sum.PendingPageN += s.PendingPageN
		sum.OpenTxN += s.OpenTxN
	}
	add(db.index.Stats())
	for _, s := range *db.segments.Load() {
		add(s.db.Stats())
		sum.OpenTxN -= s.views.waiting()
	}
	sum.OpenTxN = max(sum.OpenTxN, 0) // the two are not counted at one moment
	return sum
}

// maxRetentionLag is how late maintenance may be. A round is due every few
// seconds; only a long compaction or a failure keeps it up for longer.
const maxRetentionLag = 5 * time.Minute

// retentionLag is the time since the last round of maintenance that did all its
// deleting began: what was due before that is gone.
func (db *DB) retentionLag() time.Duration {
	return time.Since(db.reads.began) - time.Duration(db.cleared.Load())
}

// OnTime reports that old events are not deleted in time, nil if they are.
func (db *DB) OnTime(context.Context) error {
	if lag := db.retentionLag(); lag > maxRetentionLag {
		return fmt.Errorf("old events were last cleared away %s ago: the log says why", lag.Round(time.Second))
	}
	return nil
}

// Room reports why there is no room for new events, nil if there is. Reading
// and deleting go on without.
func (db *DB) Room(context.Context) error {
	if db.closed() {
		return store.ErrClosed
	}
	return db.full()
}
