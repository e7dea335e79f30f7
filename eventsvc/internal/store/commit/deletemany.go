package commit

import (
	"context"
	"errors"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// deletionBatch is how many events are deleted in one commit: enough to share it, few enough for
// other writes not to notice.
const deletionBatch = 1024

// Deletions deletes versions of events.
type Deletions struct {
	Queue *Queue
	By    []byte // who asks for it
	// Prepare completes the writes of a part, if it is set.
	Prepare func([]Write) error
	// Stop is closed when the store begins to close.
	Stop <-chan struct{}

	Count    int         // of events that were deleted
	Changed  []store.Key // of those that were not, because they have changed
	Revision uint64      // of the last deletion
}

// Do deletes the versions in parts of at most deletionBatch, each in one commit. While one part is
// committed, the next one is queued. A part for which the queue has no room is halved, and tried
// again.
func (d *Deletions) Do(ctx context.Context, seen []store.Seen) (err error) {
	var before []Write
	for part := deletionBatch; err == nil && (len(seen) > 0 || before != nil); {
		var next []Write
		if len(seen) > 0 {
			if next, err = d.Writes(ctx, seen[:min(len(seen), part)]); err != nil {
				break
			}
			if d.Queue.Enqueue(&next[len(next)-1]) == nil {
				seen, part = seen[len(next):], deletionBatch
			} else {
				next, part = nil, max(1, part/2)
			}
		}
		if before != nil {
			err = d.await(before)
		} else if next == nil {
			select { // until there is room in the queue
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				err = ctx.Err()
			case <-d.Stop:
				err = store.ErrClosed
			}
		}
		before = next
	}
	if before != nil {
		_ = d.await(before) // err is set
	}
	return err
}

// Writes returns the deletions of the events that were seen. The last one has the others as With: all are queued
// together.
func (d *Deletions) Writes(ctx context.Context, seen []store.Seen) ([]Write, error) {
	writes := make([]Write, len(seen))
	for i := range seen {
		writes[i] = Write{Ctx: ctx, Kind: seglog.Deleted, Key: seen[i].Key, Seen: seen[i], Draft: store.Draft{Value: d.By}}
	}
	if d.Prepare != nil {
		if err := d.Prepare(writes); err != nil {
			return nil, err
		}
	}
	last := len(writes) - 1
	writes[last].With = writes[:last]
	return writes, nil
}

// await waits for deletions that were queued together, and counts what has become of them.
func (d *Deletions) await(writes []Write) (err error) {
	if err := d.Queue.Await(&writes[len(writes)-1]); err != nil && !errors.Is(err, ErrConflict) {
		return err
	}
	for i := range writes {
		switch w := &writes[i]; {
		case w.Err == nil:
			d.Count, d.Revision = d.Count+1, max(d.Revision, w.Revision())
		case errors.Is(w.Err, ErrConflict):
			d.Changed = append(d.Changed, w.Key)
		default:
			err = w.Err
		}
	}
	return err
}
