package bolt

import (
	"context"
	"fmt"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// maxRetentionLag is how late maintenance may be. A round is due every few seconds, and
// only a long compaction or a failure delays it longer.
const maxRetentionLag = 5 * time.Minute

// OnTime returns an error if old events are not deleted in time.
func (db *DB) OnTime(context.Context) error {
	if lag := db.maintenance.Lag(); lag > maxRetentionLag {
		return fmt.Errorf("old events were last cleared away %s ago: the log says why", lag.Round(time.Second))
	}
	return nil
}

// Ready reports why the store cannot take writes, nil if it can.
func (db *DB) Ready(context.Context) error {
	if db.life.Closed() {
		return store.ErrClosed
	}
	return db.committer.Writer.Health.Failed()
}

// Room returns an error if the disk has too little room left for new events, or the store takes
// more than its limit. Events can be read and deleted all the same.
func (db *DB) Room(context.Context) error {
	if db.life.Closed() {
		return store.ErrClosed
	}
	full, _ := db.usage.Full(0)
	return full
}
