package main

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/shared/pgtest"
	"tidings.example/tokensvc/internal/client/clienttest"
)

const demoTable = `CREATE TABLE clients (id bigserial PRIMARY KEY, client_id text UNIQUE, client_secret text, client_name text, scope text, audience text[]);
	INSERT INTO clients (client_id, client_secret, client_name, scope) VALUES ('demo', 'HASH', 'Demo', 'read');`

// TestDatabase: tokens for clients of a real PostgreSQL through one connection, which 64 requests at a time share, with
// changes of the table taking effect at once.
func TestDatabase(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	pgtest.Exec(t, dsn, strings.ReplaceAll(demoTable, "HASH", clienttest.Hash))
	r := start(t, "--database-dsn-file", tempFile(t, "dsn", dsn+"\n"), "--database-max-connections", "1", "--database-timeout", "1m")
	if status, body := fetch(t, "GET", r.admin+"/readyz?verbose", ""); status != http.StatusOK {
		t.Errorf("not ready: %s", body)
	}
	token, _ := askToken(t, r, demoForm)
	if _, claims := verified(t, r, token); claims["sub"] != "demo" {
		t.Errorf("claims %v", claims)
	}

	var wg sync.WaitGroup
	var issued atomic.Int64
	for range 64 {
		wg.Go(func() {
			for range 4 {
				post(t, http.DefaultClient, r.api+"/oauth2/token", demoForm, http.StatusOK)
				issued.Add(1)
			}
		})
	}
	wg.Wait()
	if got := issued.Load(); got != 256 {
		t.Errorf("%d of 256 answers", got)
	}

	pgtest.Exec(t, dsn, "UPDATE clients SET audience = ARRAY['https://events.example'], scope = 'write'")
	token, _ = askToken(t, r, demoForm+"&scope=write")
	if _, claims := verified(t, r, token); claims["aud"] != "https://events.example" {
		t.Errorf("claims after the change %v", claims)
	}
	for _, step := range []struct {
		sql    string
		status int
	}{
		{"UPDATE clients SET client_secret = '" + clienttest.NextHash + "'", http.StatusUnauthorized},
		{"UPDATE clients SET client_secret = '" + clienttest.Hash + "'", http.StatusOK},
		{"ALTER TABLE clients RENAME TO hidden", http.StatusServiceUnavailable},
		{"ALTER TABLE hidden RENAME TO clients", http.StatusOK},
		{"DELETE FROM clients", http.StatusUnauthorized},
	} {
		pgtest.Exec(t, dsn, step.sql)
		if status, body := fetch(t, "POST", r.api+"/oauth2/token", demoForm); status != step.status {
			t.Errorf("after %s: %d %s", step.sql, status, body)
		}
	}
	if password := dsn[strings.Index(dsn, "postgres:")+9:]; strings.Contains(r.log(), password[:strings.Index(password, "@")]) {
		t.Error("the log repeats the database's password")
	}
}

// BenchmarkTokenDatabase is BenchmarkToken with clients in PostgreSQL.
func BenchmarkTokenDatabase(b *testing.B) {
	dsn := pgtest.Start(b).Database(b)
	pgtest.Exec(b, dsn, strings.ReplaceAll(demoTable, "HASH", clienttest.Hash))
	benchmarkToken(b, start(b, "--database-dsn", dsn), 64)
}
