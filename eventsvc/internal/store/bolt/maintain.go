package bolt

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/usage"
)

// Run keeps the store within its limits until ctx ends or the store closes. Failures are logged
// and tried again, but for that of a file that could not be written ([store.ErrUnwritable]): it
// ends Run, and nothing but a start mends it.
func (db *DB) Run(ctx context.Context) error {
	health := db.committer.Writer.Health
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(db.life.Ctx, cancel)()
	defer health.OnFailure(cancel)()
	db.maintenance.Run(ctx)
	return health.Failed()
}

// Maintain does one round of what Run does.
func (db *DB) Maintain(ctx context.Context) error { return db.maintenance.Round(ctx) }

// Compact brings back all disk space that can be had, and gives sealed log files a form (see
// [maintenance.Maintenance.Compact]).
func (db *DB) Compact(ctx context.Context, compress bool, progress store.Progress) error {
	return db.maintenance.Compact(ctx, compress, progress)
}

// DropDamaged drops what cannot be read from a store that no process has open (see
// [maintenance.Maintenance.DropDamaged]). The next [Open] makes its index again.
func DropDamaged(ctx context.Context, o Options, progress store.Progress) (dropped maintenance.Dropped, err error) {
	lock, err := lockDir(o.Dir) // until the index is removed
	if err != nil {
		return dropped, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	db, err := open(o, nil)
	if err != nil {
		return dropped, err
	}
	dropped, err = db.maintenance.DropDamaged(ctx, progress)
	path := db.index.Path()
	if err = errors.Join(err, db.Close()); err == nil {
		err = disk.Remove(path)
	}
	return dropped, err
}

// Stats returns the present figures.
func (db *DB) Stats() usage.Stats { return db.usage.Stats() }
