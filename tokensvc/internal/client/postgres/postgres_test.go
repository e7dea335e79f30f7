package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidings.example/shared/pgtest"
	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/client/clienttest"
	"tidings.example/tokensvc/internal/client/postgres"
)

// table is the contract's table with all optional columns.
const table = `CREATE TABLE clients (id bigserial PRIMARY KEY, client_id text UNIQUE, client_secret text, client_name text, scope text,
	client_secret_next text, client_secret_next_until timestamptz, audience text[], jwks jsonb, public_keys text, assertion_issuer text, assertion_subject text);`

const rows = `INSERT INTO clients (client_id, client_name, client_secret, scope, client_secret_next, client_secret_next_until, audience) VALUES
	('plain', 'One secret', 'HASH', 'read', NULL, NULL, NULL),
	('prefixed', 'Prefix', '{bcrypt}HASH', 'ROLE_USER', NULL, NULL, NULL),
	('two', 'Two secrets', 'HASH', 'read', 'NEXT', '2100-01-02 03:04:05+00', NULL),
	('Two', 'Case matters', 'HASH', 'write', NULL, NULL, NULL),
	('o''dd "id" \ %', 'Ünicode 名', 'HASH', 'a:b/c', NULL, NULL, NULL),
	('LONGEST', 'Longest', 'HASH', 'read', NULL, NULL, NULL),
	('aud', 'Audience', 'HASH', 'read', NULL, NULL, ARRAY['https://api.example', 'other']);
	INSERT INTO clients (client_id, client_name, client_secret, scope, jwks, public_keys) VALUES
	('key', 'A key and a secret', 'HASH', 'read', 'JWKS', NULL), ('keys', 'Two keys', NULL, 'read', 'JWKS', 'PEM');
	INSERT INTO clients (client_id, client_name, scope, assertion_issuer, assertion_subject) VALUES
	('bound', 'A workload', 'read', 'https://cluster.example', 'system:serviceaccount:shop:*'),
	('system:serviceaccount:shop:job', 'An account', 'read', 'https://cluster.example', NULL);`

func fill(sql string) string {
	return strings.NewReplacer("HASH", clienttest.Hash, "NEXT", clienttest.NextHash, "LONGEST", strings.Repeat("x", client.MaxIDLength),
		"JWKS", clienttest.JWKS, "PEM", clienttest.PEM).Replace(sql)
}

// database returns the DSN of a database in which the statements have been run.
func database(t *testing.T, srv *pgtest.Server, sql string) string {
	t.Helper()
	dsn := srv.Database(t)
	pgtest.Exec(t, dsn, fill(sql))
	return dsn
}

func open(t *testing.T, dsn string, connections int) *postgres.Store {
	t.Helper()
	return openWithin(t, dsn, connections, time.Minute)
}

func openWithin(t *testing.T, dsn string, connections int, timeout time.Duration) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(postgres.Config{DSN: dsn, MaxConnections: connections, Timeout: timeout, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t)
	for name, test := range map[string]func(*testing.T, *pgtest.Server){
		"conformance":            testConformance,
		"pool of one":            testPoolOfOne,
		"prepared statements":    testPrepared,
		"statements in the log":  testLog,
		"minimal table":          testMinimalTable,
		"optional columns":       testOptionalColumns,
		"fixed-length columns":   testFixedLength,
		"rows that are not good": testBadRows,
		"ids that are no text":   testOtherIDs,
		"many at once":           testManyAtOnce,
		"wrong schema":           testWrongSchema,
		"table changes":          testTableChanges,
		"least privilege":        testLeastPrivilege,
		"server goes and comes":  testOutage,
		"slow server":            testSlow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, srv)
		})
	}
}

func testConformance(t *testing.T, srv *pgtest.Server) {
	clienttest.Test(t, open(t, database(t, srv, table+rows), 4))
}

func testPoolOfOne(t *testing.T, srv *pgtest.Server) {
	clienttest.Test(t, open(t, database(t, srv, table+rows), 1))
}

// testPrepared: statements are prepared, a few for any number of ids, unless the DSN forbids it, as it has to behind a
// PgBouncer that gives each statement another connection.
func testPrepared(t *testing.T, srv *pgtest.Server) {
	dsn := database(t, srv, table+rows)
	for parameter, prepares := range map[string]bool{"": true, "&default_query_exec_mode=exec": false, "&default_query_exec_mode=simple_protocol": false} {
		store := open(t, dsn+parameter, 1)
		clienttest.Test(t, store)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if err := lookup(t, store, fmt.Sprint("nobody-", i)); !errors.Is(err, client.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n, err := store.Prepared(t.Context())
		if err != nil || (n > 0) != prepares || n > 9 { // the table, and up to 128 ids
			t.Errorf("with %q: %d prepared statements, %v", parameter, n, err)
		}
	}
}

// testLog: gorm's lines are debug lines of the service's log, and never have values that a client has sent.
func testLog(t *testing.T, srv *pgtest.Server) {
	dsn := database(t, srv, table+rows)
	for level, shown := range map[slog.Level]bool{slog.LevelDebug: true, slog.LevelInfo: false} {
		var log bytes.Buffer
		store, err := postgres.Open(postgres.Config{DSN: dsn, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))})
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(lookup(t, store, "plain"), store.Close())
		if text := log.String(); err != nil || strings.Contains(text, "SELECT") != shown || strings.Contains(text, "'plain'") || strings.Contains(text, "level=INFO") {
			t.Errorf("%v: %v, %s", level, err, text)
		}
	}
}

// testMinimalTable has a table without the optional columns and with columns that are not used.
func testMinimalTable(t *testing.T, srv *pgtest.Server) {
	store := open(t, database(t, srv, `
		CREATE TABLE clients (id serial PRIMARY KEY, created_at timestamptz DEFAULT now(), client_id varchar(100), client_secret varchar(100), client_name varchar(100), scope varchar(100));
		INSERT INTO clients (client_id, client_secret, client_name, scope) VALUES ('a', 'HASH', 'A', 'read');`), 1)
	c, err := store.ByClientID(t.Context(), "a")
	if err != nil || c.ID != "1" || c.Name != "A" || c.Scope != "read" || len(c.Secrets) != 1 || c.Audience != nil {
		t.Errorf("got %+v, %v", c, err)
	}
}

// testOptionalColumns: any one or two of them may be missing; the others are read.
func testOptionalColumns(t *testing.T, srv *pgtest.Server) {
	optional := []string{"client_secret_next", "client_secret_next_until", "audience", "jwks", "public_keys", "assertion_issuer", "assertion_subject"}
	missing := [][]string{nil, optional, {"client_secret_next", "client_secret_next_until"}, {"jwks", "public_keys"}}
	for _, column := range optional {
		missing = append(missing, []string{column})
	}
	for _, columns := range missing {
		sql := table + rows
		has := map[string]bool{}
		for _, column := range optional {
			if has[column] = !slices.Contains(columns, column); !has[column] {
				sql += "ALTER TABLE clients DROP COLUMN " + column + ";"
			}
		}
		store := open(t, database(t, srv, sql), 1)
		two, err := store.ByClientID(t.Context(), "two")
		aud, audErr := store.ByClientID(t.Context(), "aud")
		key, keyErr := store.ByClientID(t.Context(), "key")
		if err := errors.Join(err, audErr, keyErr); err != nil {
			t.Errorf("%v: %v", has, err)
			continue
		}
		if (len(key.Keys) == 1) != has["jwks"] {
			t.Errorf("%v: keys %v", has, key.Keys)
		}
		_, boundErr := store.ByClientID(t.Context(), "system:serviceaccount:shop:job")
		if known := has["assertion_issuer"]; known == errors.Is(boundErr, client.ErrNotFound) || known && boundErr != nil {
			t.Errorf("%v: %v", has, boundErr)
		}
		_, subjectErr := store.BySubject(t.Context(), "https://cluster.example", []string{"system:serviceaccount:shop:*"})
		if known := has["assertion_issuer"] && has["assertion_subject"]; known == errors.Is(subjectErr, client.ErrNotFound) || known && subjectErr != nil {
			t.Errorf("%v: by subject: %v", has, subjectErr)
		}
		keys, err := store.ByClientID(t.Context(), "keys") // it has no secret
		if known := has["jwks"] || has["public_keys"]; known == errors.Is(err, client.ErrNotFound) || known && err != nil {
			t.Errorf("%v: %+v, %v", has, keys, err)
		}
		wantSecrets, wantEnd := 1, false
		if has["client_secret_next"] {
			wantSecrets, wantEnd = 2, has["client_secret_next_until"]
		}
		if n := len(two.Secrets); n != wantSecrets || !two.Secrets[n-1].Until.IsZero() != wantEnd {
			t.Errorf("%v: secrets %+v", has, two.Secrets)
		}
		if (len(aud.Audience) == 2) != has["audience"] {
			t.Errorf("%v: audience %v", has, aud.Audience)
		}
	}
}

// testFixedLength: the spaces with which char(n) pads values are ignored.
func testFixedLength(t *testing.T, srv *pgtest.Server) {
	store := open(t, database(t, srv, `
		CREATE TABLE clients (id serial PRIMARY KEY, client_id char(20), client_secret char(80), client_name char(20), scope char(20));
		INSERT INTO clients (client_id, client_secret, client_name, scope) VALUES ('a', 'HASH', 'A', 'read');`), 1)
	c, err := store.ByClientID(t.Context(), "a")
	if err != nil || c.ClientID != "a" || c.Name != "A" || c.Scope != "read" {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := store.ByClientID(t.Context(), "a "); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("id with a space: %v", err)
	}
}

func testBadRows(t *testing.T, srv *pgtest.Server) {
	store := open(t, database(t, srv, `
		CREATE TABLE clients (id serial, client_id text, client_secret text, client_name text, scope text, client_secret_next text, audience text, jwks text, public_keys text, assertion_issuer text, assertion_subject text);
		INSERT INTO clients (client_id, scope, assertion_issuer, assertion_subject) VALUES ('s1', 's', 'i', 'twice'), ('s2', 's', 'i', 'twice');
		INSERT INTO clients (client_id, client_secret, scope, jwks, public_keys) VALUES ('bad-jwks', 'HASH', 's', '{}', NULL),
		('bad-pem', 'HASH', 's', NULL, 'x'), ('same-key', NULL, 's', NULL, 'PEMPEM'), ('text-jwks', NULL, 's', 'JWKS', NULL);
		INSERT INTO clients (client_id, client_secret, client_name, scope, client_secret_next, audience) VALUES
		(NULL, NULL, NULL, NULL, NULL, NULL), ('no-secret', NULL, 'n', 's', NULL, NULL), ('no-scope', 'HASH', 'n', NULL, NULL, NULL),
		('two-scopes', 'HASH', 'n', 'a b', NULL, NULL), ('plain', '{noop}x', 'n', 's', NULL, NULL), ('cost', '$2a$31$M8GJvuTinEpMTEUirGUHU.dBXDE4RfMNIsmVJo6GmI5eN5keZfTMW', 'n', 's', NULL, NULL),
		('junk', 'not a hash', 'n', 's', NULL, NULL), ('next', 'HASH', 'n', 's', 'junk', NULL), ('twice', 'HASH', 'n', 's', NULL, NULL), ('twice', 'HASH', 'n', 's', NULL, NULL),
		('audience', 'HASH', 'n', 's', NULL, 'no list'), ('no-name', 'HASH', NULL, 's', NULL, NULL);`), 1)
	for _, id := range []string{"no-secret", "no-scope", "two-scopes", "plain", "cost", "junk", "next", "twice", "audience", "bad-jwks", "bad-pem", "same-key"} {
		if c, err := store.ByClientID(t.Context(), id); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("%s: got %v, error %v; want ErrNotFound", id, c, err)
		}
	}
	if c, err := store.BySubject(t.Context(), "i", []string{"twice"}); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a subject of two clients: got %v, error %v", c, err)
	}
	for _, id := range []string{"no-name", "text-jwks"} {
		if _, err := store.ByClientID(t.Context(), id); err != nil {
			t.Errorf("%s is good: %v", id, err)
		}
	}
}

// testOtherIDs: no form of an unknown id causes an error other than ErrNotFound.
func testOtherIDs(t *testing.T, srv *pgtest.Server) {
	for kind, id := range map[string]string{"uuid": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "bigint": "42"} {
		store := open(t, database(t, srv, `
			CREATE TABLE clients (id serial PRIMARY KEY, client_id `+kind+`, client_secret text, client_name text, scope text);
			INSERT INTO clients (client_id, client_secret, client_name, scope) VALUES ('`+id+`', 'HASH', 'A', 'read');`), 1)
		if err := lookup(t, store, id); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := lookup(t, store, "demo"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("%s: unknown id: %v", kind, err)
		}
	}
}

// testManyAtOnce: look-ups that share a query each get their own answer, however many rows another id has.
func testManyAtOnce(t *testing.T, srv *pgtest.Server) {
	store := open(t, database(t, srv, strings.Replace(table, "UNIQUE", "", 1)+rows+`
		INSERT INTO clients (client_id, client_name, client_secret, scope) SELECT 'twice', 'n', 'HASH', 's' FROM generate_series(1, 100);`), 1)
	var wg sync.WaitGroup
	for range 50 {
		for id, found := range map[string]bool{"plain": true, "two": true, "Two": true, `o'dd "id" \ %`: true, "twice": false, "nobody": false, "{a,b}": false} {
			wg.Go(func() {
				c, err := store.ByClientID(t.Context(), id)
				if found && (err != nil || c.ClientID != id) || !found && !errors.Is(err, client.ErrNotFound) {
					t.Errorf("%s: %+v, %v", id, c, err)
				}
			})
		}
	}
	wg.Wait()
}

func testWrongSchema(t *testing.T, srv *pgtest.Server) {
	for _, tc := range []struct{ sql, want string }{
		{"", "no table clients"},
		{"CREATE TABLE clients (id int, client_id text)", "client_name, client_secret, scope"},
	} {
		store := open(t, database(t, srv, tc.sql), 1)
		for what, err := range map[string]error{"ready": store.Ready(t.Context()), "look-up": lookup(t, store, "a")} {
			if err == nil || errors.Is(err, client.ErrNotFound) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v; want one that names %q", what, err, tc.want)
			}
		}
	}
}

func lookup(t *testing.T, store *postgres.Store, id string) error {
	t.Helper()
	_, err := store.ByClientID(t.Context(), id)
	return err
}

// testTableChanges: columns that come or go while the service runs do not need a restart.
func testTableChanges(t *testing.T, srv *pgtest.Server) {
	dsn := database(t, srv, table+rows)
	store := open(t, dsn, 2)
	for _, sql := range []string{
		"SELECT 1",
		"ALTER TABLE clients DROP COLUMN client_secret_next_until",
		"ALTER TABLE clients ALTER COLUMN scope TYPE varchar(50)",
		"ALTER TABLE clients DROP COLUMN audience, ADD COLUMN extra text",
		"UPDATE clients SET scope = 'changed' WHERE client_id = 'plain'",
	} {
		pgtest.Exec(t, dsn, sql)
		for range 3 {
			if err := lookup(t, store, "plain"); err != nil {
				t.Errorf("after %s: %v", sql, err)
			}
		}
	}
	if c, err := store.ByClientID(t.Context(), "plain"); err != nil || c.Scope != "changed" {
		t.Errorf("a changed row is read as %+v, %v", c, err)
	}
	pgtest.Exec(t, dsn, "ALTER TABLE clients ADD COLUMN audience text[] DEFAULT ARRAY['a']")
	store.Reload()
	if c, err := store.ByClientID(t.Context(), "plain"); err != nil || len(c.Audience) != 1 {
		t.Errorf("with an added column the row is read as %+v, %v", c, err)
	}
}

// testLeastPrivilege runs the SQL that compose uses and reads as the role that it makes.
func testLeastPrivilege(t *testing.T, srv *pgtest.Server) {
	sql, err := os.ReadFile("../../../../deploy/compose/postgres/10-clients.sql")
	if err != nil {
		t.Fatal(err)
	}
	dsn := srv.Database(t)
	dropRole := "DROP OWNED BY tokensvc; DROP ROLE tokensvc;"
	pgtest.Exec(t, dsn, "DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tokensvc') THEN "+dropRole+" END IF; END $$")
	pgtest.Exec(t, dsn, string(sql))
	t.Cleanup(func() { pgtest.Exec(t, dsn, dropRole) })
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	limited := strings.Replace(dsn, conf.User+":"+conf.Password+"@", "tokensvc:tokensvc@", 1)
	store := open(t, limited, 1)
	c, err := store.ByClientID(t.Context(), "demo")
	if err != nil || c.Scope != "events" {
		t.Fatalf("demo client: %+v, %v", c, err)
	}
	auth, err := client.New(client.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := auth.Authenticate(t.Context(), client.Attempt{ClientID: "demo", Secret: "demo-secret"}); err != nil {
		t.Errorf("the documented demo secret does not fit: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), limited)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range []string{"UPDATE clients SET scope = 'x'", "DELETE FROM clients", "CREATE TABLE mine ()"} {
		if _, err := conn.Exec(t.Context(), "SET default_transaction_read_only = off; "+sql, pgx.QueryExecModeSimpleProtocol); err == nil {
			t.Errorf("the role may %s", sql)
		}
	}
}

// testOutage cuts the network: it is down at start, up, down while connections are open, and up again.
func testOutage(t *testing.T, srv *pgtest.Server) {
	dsn := database(t, srv, table+rows)
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	target := net.JoinHostPort(conf.Host, portOf(t, dsn))
	wire := newWire(t, target)
	store := open(t, strings.Replace(dsn, target, wire.addr, 1), 2)
	for _, up := range []bool{false, true, false, true} {
		wire.set(up)
		err := lookup(t, store, "plain")
		if up && err != nil {
			t.Errorf("up: %v", err)
		}
		if !up && (err == nil || errors.Is(err, client.ErrNotFound)) {
			t.Errorf("down: error %v; want one that is not ErrNotFound", err)
		}
		if ready := store.Ready(t.Context()) == nil; ready != up {
			t.Errorf("ready %v while up is %v", ready, up)
		}
	}
}

func portOf(t *testing.T, dsn string) string {
	t.Helper()
	_, rest, _ := strings.Cut(dsn, "@")
	hostport, _, _ := strings.Cut(rest, "/")
	_, port, err := net.SplitHostPort(hostport)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// testSlow: a query that takes too long is an outage, after the time limit, and does not affect later look-ups.
func testSlow(t *testing.T, srv *pgtest.Server) {
	store := openWithin(t, database(t, srv, strings.Replace(table, "TABLE clients", "TABLE slow_clients", 1)+
		strings.ReplaceAll(rows, "INTO clients", "INTO slow_clients")+
		`CREATE VIEW clients AS SELECT * FROM slow_clients WHERE client_id <> 'prefixed' OR pg_sleep(600) IS NOT NULL;`), 1, 10*time.Second)
	if err := lookup(t, store, "prefixed"); err == nil || errors.Is(err, client.ErrNotFound) {
		t.Errorf("slow look-up: error %v; want one that is not ErrNotFound", err)
	}
	if err := lookup(t, store, "plain"); err != nil {
		t.Errorf("next look-up: %v", err)
	}
}

func TestOpenRefusesBadDSNWithoutRepeatingIt(t *testing.T) {
	t.Parallel()
	_, err := postgres.Open(postgres.Config{DSN: "postgres://user:pa55word@host:port/db", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err == nil || strings.Contains(err.Error(), "pa55word") {
		t.Errorf("error %v", err)
	}
}

// wire is a TCP connection to the server that can be cut.
type wire struct {
	addr, target string

	mu   sync.Mutex
	up   bool
	open []net.Conn
}

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{addr: l.Addr().String(), target: target}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.connect(conn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done; w.set(false) })
	return w
}

func (w *wire) connect(near net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.up {
		near.Close()
		return
	}
	far, err := net.Dial("tcp", w.target)
	if err != nil {
		near.Close()
		return
	}
	w.open = append(w.open, near, far)
	go func() { _, _ = io.Copy(far, near); far.Close() }()
	go func() { _, _ = io.Copy(near, far); near.Close() }()
}

func (w *wire) set(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = up
	if up {
		return
	}
	for _, c := range w.open {
		c.Close()
	}
	w.open = nil
}
