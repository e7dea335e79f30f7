package main

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestClientsDatabasePage: the page about the move to PostgreSQL has the same clients in its file and in its SQL, and
// both give the same tokens.
func TestClientsDatabasePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../deploy/docs/how-to/clients-database.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "{bcrypt}$2a$10$…", "{bcrypt}"+clienttest.Hash)
	blocks := map[string][]string{}
	for _, b := range regexp.MustCompile("(?s)```(yaml|sql)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks[b[1]] = append(blocks[b[1]], b[2])
	}
	if len(blocks["yaml"]) != 1 || len(blocks["sql"]) != 2 {
		t.Fatalf("%d files and %d blocks of SQL", len(blocks["yaml"]), len(blocks["sql"]))
	}
	dsn := pgtest.Start(t).Database(t)
	for _, sql := range blocks["sql"] {
		pgtest.Exec(t, dsn, sql)
	}
	service, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	service.User = url.UserPassword("tokensvc", "PASSWORD") // the role of the page
	trusted := tempFile(t, "issuers.yaml", "- {issuer: \"https://kubernetes.default.svc.cluster.local\", jwksURL: \"http://127.0.0.1:1/\"}\n")
	var claims [2]map[string]any
	for i, source := range []string{"--clients-file=" + tempFile(t, "clients.yaml", blocks["yaml"][0]), "--database-dsn=" + service.String()} {
		r := start(t, source, "--trusted-issuers-file", trusted)
		token, _ := askToken(t, r, "grant_type=client_credentials&client_id=reporter&client_secret=s3cret&scope=events")
		_, claims[i] = verified(t, r, token)
		for _, own := range []string{"iss", "iat", "nbf", "exp", "jti"} {
			delete(claims[i], own)
		}
	}
	if diff := cmp.Diff(claims[0], claims[1]); diff != "" || claims[0]["sub"] != "reporter" {
		t.Errorf("claims (-file +table):\n%s", diff)
	}
	pgtest.Exec(t, dsn, "DROP TABLE clients; DROP ROLE tokensvc")
}
