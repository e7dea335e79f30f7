package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Pool starts a PgBouncer before the first server of a DSN, with nothing set but the pool mode, and returns the DSN
// that leads through it. It is stopped after the test. If PgBouncer is not installed, the test is skipped, or fails if
// CI=true is set.
func Pool(t testing.TB, dsn, mode string) string {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil && os.Getenv("CI") == "true" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip("needs PgBouncer: install it (Debian: apt-get install pgbouncer)")
		}
	}
	server, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	attr, uid, gid, err := unprivileged() // PgBouncer refuses to run as root too
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgbouncer") // not t.TempDir, which its user may not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &process{dir: dir}
	if err = p.takePort(); err != nil {
		t.Fatal(err)
	}
	settings, users := filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "users")
	for file, text := range map[string]string{
		users: fmt.Sprintf("%q %q\n", server.User, server.Password),
		settings: fmt.Sprintf("[databases]\n* = host=%s port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = plain\nauth_file = %s\npool_mode = %s\n",
			server.Host, server.Port, p.port, users, mode),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(bin, settings)
	p.cmd.SysProcAttr, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = attr, dir, &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
		p.stop()
		if t.Failed() {
			t.Logf("PgBouncer's log:\n%s", p.log.String())
		}
	})
	p.dsn = fmt.Sprintf("postgres://%s:%s@127.0.0.1:%s/%s?sslmode=disable", server.User, server.Password, p.port, server.Database)
	if err := waitFor(t.Context(), p.dsn); err != nil {
		t.Fatal(err)
	}
	return p.dsn
}
