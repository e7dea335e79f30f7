package postgres

import (
	"context"
	"time"
)

// KeepEvery has history looked for more often.
func KeepEvery(o *Options, every time.Duration) { o.keepEvery = every }

// Behind returns how many revisions the copy lacked when the tail looked last.
func Behind(db *DB) uint64 { return db.tail.behind.Load() }

// Doubt has the copy compared with the database, as after a lost connection.
func Doubt(db *DB) { db.tail.doubt() }

// Keeps reports whether this replica clears away what is past its time.
func Keeps(db *DB) bool { return db.keeper.holds() }

// Setting returns what the server uses for the statements of the tail.
func Setting(ctx context.Context, db *DB, name string) (value string, err error) {
	return value, db.pool.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value)
}
