package postgres

import (
	"context"
	"time"
)

// Secret returns the secret of the console's sessions, which all replicas share.
func (db *DB) Secret(ctx context.Context) (secret []byte, err error) {
	err = db.pool.QueryRow(ctx, "SELECT secret FROM head").Scan(&secret)
	return secret, err
}

// EndSession notes that a session of the console has ended, for all replicas, and forgets those that are too old to be
// resumed.
func (db *DB) EndSession(ctx context.Context, id string, until time.Time) error {
	if _, err := db.pool.Exec(ctx, "DELETE FROM ended_session WHERE until < clock_timestamp()"); err != nil {
		return err
	}
	_, err := db.pool.Exec(ctx, "INSERT INTO ended_session (id, until) VALUES ($1, $2) ON CONFLICT DO NOTHING", id, until)
	return err
}

// SessionEnded reports whether a session of the console has ended.
func (db *DB) SessionEnded(ctx context.Context, id string) (ended bool, err error) {
	err = db.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM ended_session WHERE id = $1)", id).Scan(&ended)
	return ended, err
}
