package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Report is what a check of a database has found.
type Report struct {
	Schema
	Cluster         string   `json:"cluster"`         // id of the database
	Epoch           uint64   `json:"epoch"`           // 1, and one more for each failover that has lost commits
	Revision        uint64   `json:"revision"`        // of the newest write
	CompactRevision uint64   `json:"compactRevision"` // the oldest state that can be read
	Events          int64    `json:"events"`          // that exist
	Records         int64    `json:"records"`         // versions and deletions
	Bytes           int64    `json:"bytes"`           // tables and indexes
	Notes           []string `json:"notes"`           // what lessens a promise
	Problems        []string `json:"problems"`        // what contradicts one
}

// Check reads everything in a database, in one snapshot.
func Check(ctx context.Context, a Access) (r *Report, err error) {
	err = with(ctx, a, func(ctx context.Context, pool *pgxpool.Pool) error {
		r = &Report{}
		return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error { return r.read(ctx, tx) })
	})
	return r, err
}

func (r *Report) read(ctx context.Context, tx pgx.Tx) (err error) {
	if r.Schema, err = readSchema(ctx, tx); err != nil {
		return err
	}
	if err := r.Usable(); err != nil {
		r.Problems = append(r.Problems, err.Error())
		return nil
	}
	var encoding string
	var standby, owner bool
	err = tx.QueryRow(ctx, `
		SELECT cluster::text, epoch, revision, compact_revision, (SELECT count(*) FROM objects), (SELECT count(*) FROM log),
			(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
				WHERE c.relnamespace = 'eventsvc'::regnamespace AND c.relkind = 'r'),
			current_setting('server_encoding'), current_setting('synchronous_standby_names') <> '',
			has_schema_privilege('eventsvc', 'CREATE')
		FROM head`).
		Scan(&r.Cluster, &r.Epoch, &r.Revision, &r.CompactRevision, &r.Events, &r.Records, &r.Bytes, &encoding, &standby, &owner)
	if err != nil {
		return err
	}
	if encoding != "UTF8" {
		r.Problems = append(r.Problems, fmt.Sprintf("the encoding of the database is %s: create it with UTF8", encoding))
	}
	if !standby {
		r.Notes = append(r.Notes, "no synchronous standby is required (synchronous_standby_names is empty): a failover can lose acknowledged writes")
	}
	if owner {
		r.Notes = append(r.Notes, "this role may change the schema: \"serve\" needs one that may not")
	}
	for _, rule := range rules {
		var n int64
		if err := tx.QueryRow(ctx, rule.sql).Scan(&n); err != nil {
			return err
		}
		if n != 0 {
			r.Problems = append(r.Problems, fmt.Sprintf("%d %s", n, rule.broken))
		}
	}
	return nil
}

// rules count what may not be there.
var rules = []struct{ broken, sql string }{
	{"events without the record of their newest version", `
		SELECT count(*) FROM objects o WHERE NOT EXISTS (
			SELECT FROM log l WHERE l.revision = o.revision AND l.namespace = o.namespace AND l.name = o.name AND l.op < 3)`},
	{"records that are the newest of their event, which does not exist", `
		SELECT count(*) FROM log l WHERE l.op < 3
			AND NOT EXISTS (SELECT FROM objects o WHERE o.namespace = l.namespace AND o.name = l.name AND o.revision = l.revision)
			AND NOT EXISTS (SELECT FROM log n WHERE n.previous = l.revision)`},
	{"revisions missing behind the compact revision", `
		SELECT h.revision - h.compact_revision - (SELECT count(*) FROM log l WHERE l.revision > h.compact_revision) FROM head h`},
	{"records behind the newest revision", `SELECT count(*) FROM log l, head h WHERE l.revision > h.revision`},
	{"records that are older than the one before", `
		SELECT count(*) FROM (SELECT time < lag(time) OVER (ORDER BY revision) AS back FROM log) t WHERE back`},
}
