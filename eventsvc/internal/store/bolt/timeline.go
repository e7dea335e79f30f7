package bolt

import "tidings.example/eventsvc/internal/store"

// Timeline returns the timeline of the store.
func (db *DB) Timeline() store.Timeline { return db.read }
