package postgres_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/shared/certtest"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// service returns the DSN of a role that may serve from a database, and that may not change its schema.
func service(t testing.TB, dsn string) string {
	t.Helper()
	const role = "eventsvc_service"
	pgtest.Exec(t, dsn, `DO $$ BEGIN CREATE ROLE `+role+` LOGIN PASSWORD 'service'; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	if _, err := postgres.Migrate(t.Context(), postgres.Access{DSN: dsn}, role); err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(dsn, "@")
	return "postgres://" + role + ":service" + dsn[at:]
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	owner := postgres.Access{DSN: dsn}
	if s, err := postgres.ReadSchema(t.Context(), owner); err != nil || s.Version != 0 || s.Usable() == nil || !strings.Contains(s.Usable().Error(), "database migrate") {
		t.Errorf("an empty database: %+v, %v", s, err)
	}
	served := postgres.Access{DSN: service(t, dsn)}
	for range 2 { // the second time nothing is to be done
		s, err := postgres.Migrate(t.Context(), owner, "")
		if err != nil || s.Version == 0 || s.Version != s.Known || s.Usable() != nil {
			t.Errorf("migrated: %+v, %v", s, err)
		}
	}
	if _, err := postgres.Migrate(t.Context(), postgres.Access{DSN: served.DSN}, ""); err != nil {
		t.Errorf("the service's role finds nothing to do, but gets %v", err)
	}
	r, err := postgres.Check(t.Context(), served)
	if err != nil || len(r.Problems) > 0 || r.Revision != 1 || r.Epoch != 1 {
		t.Errorf("checked: %+v, %v", r, err)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "synchronous standby") || strings.Contains(notes, "may change the schema") {
		t.Errorf("notes of the service's role: %s", notes)
	}
	pgtest.Exec(t, dsn, "INSERT INTO eventsvc.migration VALUES (9999, 'from_the_future')")
	s, err := postgres.ReadSchema(t.Context(), served)
	if err != nil || s.Usable() == nil || !strings.Contains(s.Usable().Error(), "from_the_future") {
		t.Errorf("a newer schema: %+v, %v", s, err)
	}
	if _, err := postgres.Migrate(t.Context(), owner, ""); err == nil {
		t.Error("a newer schema was migrated")
	}
}

// The check finds what contradicts a promise.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	for name, damage := range map[string]string{
		"without the record":   "INSERT INTO eventsvc.objects VALUES ('a', 'b', 7)",
		"revisions missing":    "UPDATE eventsvc.head SET revision = 5",
		"behind the newest":    "SELECT eventsvc.add_partition(1); INSERT INTO eventsvc.log VALUES (2, 3, 'a', 'b', 0, now(), '', '')",
		"which does not exist": "SELECT eventsvc.add_partition(1); INSERT INTO eventsvc.log VALUES (2, 1, 'a', 'b', 0, now(), '', '')",
		"older than the one":   "SELECT eventsvc.add_partition(1); INSERT INTO eventsvc.log VALUES (2, 1, 'a', 'b', 0, now(), '', ''), (3, 3, 'a', 'b', 2, now() - interval '1 hour', '', '')",
	} {
		dsn := server.Database(t)
		if _, err := postgres.Migrate(t.Context(), postgres.Access{DSN: dsn}, ""); err != nil {
			t.Fatal(err)
		}
		pgtest.Exec(t, dsn, damage)
		r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn})
		if err != nil || !strings.Contains(strings.Join(r.Problems, "\n"), name) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// No error repeats the password, whatever is wrong with the DSN.
func TestErrorsWithoutDSN(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://user:topsecret@127.0.0.1:1/db", "postgres://user:topsecret@%zz/db", "host=127.0.0.1 port=none password=topsecret",
		"postgres://user:topsecret@host.invalid/db", "postgres://user:topsecret@127.0.0.1:1/db?sslmode=topsecret",
	} {
		_, err := postgres.ReadSchema(t.Context(), postgres.Access{DSN: dsn})
		if err == nil || strings.Contains(err.Error(), "topsecret") || strings.Contains(err.Error(), "user") && strings.Contains(err.Error(), "db`") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// With sslmode=verify-full nothing is sent to a server without encryption, with a certificate of another authority, or
// with one for another name.
func TestVerifyFull(t *testing.T) {
	t.Parallel()
	dsn := pgtest.StartPair(t).DSN // its settings are changed
	service(t, dsn)
	ask := func(authority string) error {
		full := strings.Replace(dsn, "sslmode=disable", "sslmode=verify-full&sslrootcert="+authority, 1)
		_, err := postgres.ReadSchema(t.Context(), postgres.Access{DSN: full})
		return err
	}
	refused := func(authority, because string) {
		t.Helper()
		waittest.Becomes(t, func() error { // the server applies its new settings some time later
			if err := ask(authority); err == nil || !strings.Contains(err.Error(), because) {
				return errors.Join(err, fmt.Errorf("want %q", because))
			}
			return nil
		})
	}
	stranger := t.TempDir()
	certtest.Write(t, stranger, "127.0.0.1")
	refused(filepath.Join(stranger, "ca.crt"), "refused TLS")
	authority := pgtest.Encrypt(t, dsn, "127.0.0.1")
	waittest.Becomes(t, func() error { return ask(authority) })
	refused(filepath.Join(stranger, "ca.crt"), "unknown authority")
	refused(pgtest.Encrypt(t, dsn, "db.example"), "because it doesn't contain any IP SANs") // the DSN has an address
}
