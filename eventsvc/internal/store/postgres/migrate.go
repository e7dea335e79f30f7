package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tidings.example/shared/pgreason"
)

//go:embed migrations/*.sql
var migrations embed.FS

// A migration is one step of the schema. What was released is never changed, only added to.
type migration struct {
	version int
	name    string
	sql     string
}

// steps returns all migrations that this program knows, in order. Their files are named version_name.sql.
func steps() (all []migration, err error) {
	files, err := migrations.ReadDir("migrations") // sorted by name
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		number, name, _ := strings.Cut(strings.TrimSuffix(f.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: its number is not %d", f.Name(), i+1)
		}
		text, err := migrations.ReadFile(path.Join("migrations", f.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, migration{version, name, string(text)})
	}
	return all, nil
}

// Schema says which version of the schema a database has.
type Schema struct {
	Version int    `json:"version"` // 0: none
	Known   int    `json:"known"`   // the newest that this program knows
	Name    string `json:"name"`    // of the last migration, also of one that this program does not know
}

// Usable returns an error if this program cannot serve from a database with the schema.
func (s Schema) Usable() error {
	switch {
	case s.Version < s.Known:
		return fmt.Errorf("the schema of the database has version %d, this program needs %d: run \"eventsvc database migrate\"", s.Version, s.Known)
	case s.Version > s.Known:
		return fmt.Errorf("the schema of the database has version %d (%s), this program knows %d: start a newer eventsvc", s.Version, s.Name, s.Known)
	}
	return nil
}

// querier is what pools, connections and transactions have in common.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readSchema reads which migrations were applied.
func readSchema(ctx context.Context, db querier) (s Schema, err error) {
	all, err := steps()
	if err != nil {
		return s, err
	}
	s.Known = len(all)
	var there bool
	err = db.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", schema+".migration").Scan(&there)
	if err != nil || !there {
		return s, pgreason.Of(err)
	}
	err = db.QueryRow(ctx, "SELECT version, name FROM "+schema+".migration ORDER BY version DESC LIMIT 1").Scan(&s.Version, &s.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return s, pgreason.Of(err)
}

// ReadSchema returns the version of the schema of a database.
func ReadSchema(ctx context.Context, a Access) (s Schema, err error) {
	err = with(ctx, a, func(ctx context.Context, pool *pgxpool.Pool) error {
		s, err = readSchema(ctx, pool)
		return err
	})
	return s, err
}

// Migrate brings the schema of a database to the version of this program, and returns it. Its role must own the schema,
// or be allowed to create it. The role of the service, if it is another one, is then granted what it needs. Services
// may run meanwhile: a migration that they could not stand would have to say so in its name.
func Migrate(ctx context.Context, a Access, serviceRole string) (s Schema, err error) {
	err = with(ctx, a, func(ctx context.Context, pool *pgxpool.Pool) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			s, err = migrate(ctx, tx, serviceRole)
			return err
		})
	})
	return s, pgreason.Of(err)
}

// migrationLock is the key of the advisory lock that one migration at a time holds.
const migrationLock = 0x7469_6e67_0001

// begin makes the schema, unless somebody has made it for a role that may not, and the table of migrations.
const begin = `
DO $$ BEGIN
	IF to_regnamespace('eventsvc') IS NULL THEN
		CREATE SCHEMA eventsvc;
	END IF;
END $$;
CREATE TABLE migration (version integer PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT clock_timestamp())`

// migrate applies what is missing in one transaction.
func migrate(ctx context.Context, tx pgx.Tx, serviceRole string) (Schema, error) {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
		return Schema{}, err
	}
	s, err := readSchema(ctx, tx)
	if err != nil {
		return s, err
	}
	if s.Version > s.Known {
		return s, s.Usable()
	}
	all, err := steps()
	if err != nil {
		return s, err
	}
	if s.Version == 0 {
		if _, err := tx.Conn().PgConn().Exec(ctx, begin).ReadAll(); err != nil {
			return s, err
		}
	}
	for _, m := range all[s.Version:] {
		if _, err := tx.Conn().PgConn().Exec(ctx, m.sql).ReadAll(); err != nil {
			return s, fmt.Errorf("migration %d (%s): %w", m.version, m.name, err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO migration (version, name) VALUES ($1, $2)", m.version, m.name); err != nil {
			return s, err
		}
		s.Version, s.Name = m.version, m.name
	}
	return s, grant(ctx, tx, serviceRole)
}

// grant allows a role to serve, but not to change the schema.
func grant(ctx context.Context, tx pgx.Tx, role string) error {
	if role == "" {
		return nil
	}
	name := pgx.Identifier{role}.Sanitize()
	for _, sql := range []string{
		"GRANT USAGE ON SCHEMA " + schema + " TO " + name,
		"GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO " + name,
		"GRANT INSERT, DELETE ON log, objects, writer, ended_session TO " + name,
		"GRANT UPDATE ON head, confirmed, objects, writer TO " + name,
		"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA " + schema + " TO " + name,
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// with calls f with a pool that it closes again.
func with(ctx context.Context, a Access, f func(context.Context, *pgxpool.Pool) error) error {
	pool, err := a.pool()
	if err != nil {
		return err
	}
	defer pool.Close()
	return pgreason.Of(f(ctx, pool))
}
