package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Prepared is the number of statements that the one connection of a pool has prepared.
func (s *Store) Prepared(ctx context.Context) (n int, err error) {
	err = s.pool.QueryRowContext(ctx, "SELECT count(*) FROM pg_prepared_statements", pgx.QueryExecModeSimpleProtocol).Scan(&n)
	return n, err
}

// Session is whether transactions are read-only, and how long a statement may take, in the one connection of a pool.
func (s *Store) Session(ctx context.Context) (settings string, err error) {
	err = s.pool.QueryRowContext(ctx, "SELECT current_setting('default_transaction_read_only') || ' ' || current_setting('statement_timeout')").Scan(&settings)
	return settings, err
}

// Queries shares queries among look-ups without a database: ask gets the ids of a query and returns its error.
func Queries(parallel int, ask func(ids []string) error) (find func(ctx context.Context, id string) error) {
	qs := &queries{free: parallel, ask: func(ids []string) ([]row, error) { return nil, ask(ids) }}
	return func(ctx context.Context, id string) error {
		_, err := qs.find(ctx, id)
		return err
	}
}
