package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/shared/certtest"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
	"tidings.example/tokensvc/internal/client/clienttest"
)

// TestDatabaseTLS: with sslmode=verify-full the connection is encrypted, and it is made only to a server whose
// certificate has its name and is signed by the configured authority. It does not run beside other tests, because some
// send SIGHUP to the process, which closes idle connections, and this one looks at them.
func TestDatabaseTLS(t *testing.T) {
	if os.Getenv("TEST_POSTGRES_DSN") != "" {
		t.Skip("changes the server's settings, so it needs one that it starts itself: unset TEST_POSTGRES_DSN")
	}
	dsn := pgtest.Start(t).Database(t)
	pgtest.Exec(t, dsn, strings.ReplaceAll(demoTable, "HASH", clienttest.Hash))
	ask := func(authority string, wait bool) (status int, text string) {
		t.Helper()
		full := strings.Replace(dsn, "sslmode=disable", "sslmode=verify-full&sslrootcert="+authority, 1)
		r := start(t, "--database-dsn-file", tempFile(t, "dsn", full))
		waittest.Becomes(t, func() error { // the server applies its new settings some time later
			var body []byte
			status, body = fetch(t, "POST", r.api+"/oauth2/token", demoForm)
			if text = string(body); wait && status != http.StatusOK {
				return fmt.Errorf("%d %s", status, text)
			}
			return nil
		})
		if status == http.StatusOK {
			pgtest.Exec(t, dsn, `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
				WHERE ssl AND version >= 'TLSv1.2' AND application_name = 'tokensvc') THEN RAISE 'the connection is not encrypted'; END IF; END $$`)
		}
		return status, text
	}
	stranger := t.TempDir()
	certtest.Write(t, stranger, "127.0.0.1")
	if status, body := ask(filepath.Join(stranger, "ca.crt"), false); status != http.StatusServiceUnavailable {
		t.Errorf("a server without encryption: %d %s", status, body)
	}
	authority := pgtest.Encrypt(t, dsn, "127.0.0.1")
	if status, body := ask(authority, true); status != http.StatusOK {
		t.Errorf("the right authority: %d %s", status, body)
	}
	if status, body := ask(filepath.Join(stranger, "ca.crt"), false); status != http.StatusServiceUnavailable {
		t.Errorf("another authority: %d %s", status, body)
	}
	if status, body := ask(pgtest.Encrypt(t, dsn, "db.example"), false); status != http.StatusServiceUnavailable {
		t.Errorf("a certificate for another name: %d %s", status, body)
	}
}
