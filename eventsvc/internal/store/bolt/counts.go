package bolt

import (
	"context"
	"time"

	"tidings.example/eventsvc/internal/store/seglog"
)

// Counts calls visit with the counts of the minutes from one time to before
// another, of one namespace or of all. A minute during which a new log file was
// begun comes in several counts, and so does one of which the write-ahead log has
// some. Counts are kept as long as the log file that they are in; what expires or is
// deleted stays counted.
func (db *DB) Counts(ctx context.Context, from, to time.Time, namespace string, visit func(seglog.MinuteCount)) error {
	if err := db.log.Counts(ctx, from, to, namespace, visit); err != nil {
		return db.reads.failed(err)
	}
	return nil
}
