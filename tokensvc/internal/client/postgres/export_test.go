package postgres

import "context"

// Queries is how look-ups share queries, with any database: ask is given the ids, and its error comes back.
func Queries(parallel int, ask func(ids []string) error) (find func(ctx context.Context, id string) error) {
	qs := &queries{free: parallel, ask: func(ids []string) ([]row, error) { return nil, ask(ids) }}
	return func(ctx context.Context, id string) error {
		_, err := qs.find(ctx, id)
		return err
	}
}
