package postgres

import "context"

// RemoveHistory does once what the keeper does, whichever replica has the lock.
func RemoveHistory(ctx context.Context, db *DB) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	db.keeper.held.Store(true)
	return db.keeper.keep(ctx, conn)
}
