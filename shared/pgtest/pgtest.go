// Package pgtest gives tests a real PostgreSQL: the server behind TEST_POSTGRES_DSN, or one that it starts from the
// installed programs for the duration of the test, or of all tests of a package.
package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidings.example/shared/certtest"
	"tidings.example/shared/porttest"
)

// Server is a PostgreSQL server on which tests may create databases and roles.
type Server struct{ dsn string }

// Start returns a server. If it had to be started, it is stopped after the test, or with all tests that [Run] runs. If
// PostgreSQL is not installed, the test is skipped, or fails if CI=true is set.
func Start(t testing.TB) *Server {
	t.Helper()
	if dsn := os.Getenv(variable); dsn != "" {
		return &Server{dsn: dsn}
	}
	bin := required(t)
	if common != nil {
		p, err := common.server()
		if err != nil {
			t.Fatal(err)
		}
		return &Server{dsn: p.dsn}
	}
	p, err := start(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("PostgreSQL's log:\n%s", p.log.String())
		}
	})
	return &Server{dsn: p.dsn}
}

// required returns the folder of the programs. Without them the test is skipped, or fails if CI=true is set.
func required(t testing.TB) string {
	t.Helper()
	bin, err := programs()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	return bin
}

// variable names the server of all tests of a process, if it is set.
const variable = "TEST_POSTGRES_DSN"

// common is what the tests of a package share, if [Run] runs them.
var common *shared

// shared has what is made for the first test that needs it: a data directory, which is quicker to copy than to make,
// and a server.
type shared struct {
	initial, server func() (*process, error)

	mu   sync.Mutex
	made []*process
}

// Run runs all tests of a package with one server, as TestMain does, which is started for the first test that needs it.
func Run(tests func() int) int {
	s := new(shared)
	once := func(begin func(ctx context.Context, bin string) (*process, error)) func() (*process, error) {
		return sync.OnceValues(func() (*process, error) {
			bin, err := programs()
			if err != nil {
				return nil, err
			}
			p, err := begin(context.Background(), bin)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.made = append(s.made, p)
			return p, err
		})
	}
	s.initial, s.server = once(initialize), once(start)
	common = s
	defer func() {
		for _, p := range s.made {
			p.stop()
		}
	}()
	return tests()
}

// programs finds the folder of initdb and postgres: on PATH, or where Debian puts them.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("needs PostgreSQL: install it (Debian: apt-get install postgresql), or set TEST_POSTGRES_DSN to a server on which databases and roles may be created")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// A process is a server that was started.
type process struct {
	dsn  string
	log  bytes.Buffer // to be read after stop
	ends []func()     // undo what was done, in reverse

	bin, dir string // of the programs, and of everything that is the server's
	attr     *syscall.SysProcAttr
	port     string
	password string
	cmd      *exec.Cmd
}

func (p *process) stop() {
	for _, end := range slices.Backward(p.ends) {
		end()
	}
}

// start starts a server with a new data directory.
func start(ctx context.Context, bin string) (p *process, err error) {
	if p, err = prepared(ctx, bin); err == nil {
		err = p.serve(p.data())
	}
	if err == nil {
		err = waitFor(ctx, p.dsn)
	}
	if err != nil {
		p.stop()
	}
	return p, err
}

// prepared returns a server with a new data directory, which is to be started.
func prepared(ctx context.Context, bin string) (p *process, err error) {
	if common == nil {
		return initialize(ctx, bin)
	}
	initial, err := common.initial()
	if err != nil {
		return new(process), err
	}
	if p, err = prepare(bin, initial.password); err == nil {
		err = p.program(ctx, "cp", "-R", "-p", initial.data(), p.data())
	}
	return p, err
}

// initialize makes a data directory.
func initialize(ctx context.Context, bin string) (*process, error) {
	p, err := prepare(bin, rand.Text())
	if err != nil {
		return p, err
	}
	return p, p.program(ctx, filepath.Join(bin, "initdb"), "-D", p.data(), "-U", "postgres", "-A", "scram-sha-256",
		"--pwfile", filepath.Join(p.dir, "password"), "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1")
}

// data is the data directory.
func (p *process) data() string { return filepath.Join(p.dir, "data") }

// prepare makes a directory for a server.
func prepare(bin, password string) (p *process, err error) {
	p = &process{bin: bin, password: password}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	dir, err := os.MkdirTemp("", "pgtest") // not t.TempDir, which the server's user may not enter
	if err != nil {
		return p, err
	}
	p.dir = dir
	p.ends = append(p.ends, func() { os.RemoveAll(dir) })
	attr, uid, gid, err := unprivileged()
	p.attr = attr
	if err != nil {
		return p, err
	}
	passwordFile := filepath.Join(dir, "password")
	if err := errors.Join(os.WriteFile(passwordFile, []byte(p.password), 0o600), os.Chown(passwordFile, uid, gid), os.Chown(dir, uid, gid)); err != nil {
		return p, err
	}
	return p, nil
}

// program runs a program to its end, as the user of the server.
func (p *process) program(ctx context.Context, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr, cmd.Dir, cmd.Env = p.attr, p.dir, append(os.Environ(), "PGPASSWORD="+p.password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return nil
}

// serve starts the server of a data directory at a free port.
func (p *process) serve(data string) (err error) {
	if err = p.takePort(); err != nil {
		return err
	}
	if err := p.run(data); err != nil {
		return err
	}
	p.ends = append(p.ends, func() {
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // at once: nobody reads these files again
		_ = p.cmd.Wait()
	})
	p.dsn = fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%s/postgres?sslmode=disable", p.password, p.port)
	return nil
}

// run starts the server.
func (p *process) run(data string) error {
	p.cmd = exec.Command(filepath.Join(p.bin, "postgres"), "-D", data, "-p", p.port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_wal_size=1GB", "-c", "max_connections=400")
	p.cmd.SysProcAttr, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.attr, p.dir, &p.log, &p.log
	return p.cmd.Start()
}

// unprivileged returns the user that runs the server, because PostgreSQL refuses to run as root.
func unprivileged() (attr *syscall.SysProcAttr, uid, gid int, err error) {
	if os.Getuid() != 0 {
		return nil, os.Getuid(), os.Getgid(), nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil {
			return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, uid, gid, nil
		}
	}
	return nil, 0, 0, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// takePort gives the server a port, until it stops.
func (p *process) takePort() error {
	addr, release, err := porttest.Take()
	if err != nil {
		return err
	}
	p.ends = append(p.ends, release)
	_, p.port, err = net.SplitHostPort(addr)
	return err
}

func waitFor(ctx context.Context, dsn string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL did not come up: %w", err)
		case <-retry.C:
		}
	}
}

// Database creates an empty database, which is dropped after the test, and returns its DSN.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	Exec(t, s.dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() { Exec(t, s.dsn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	conf, err := pgx.ParseConfig(s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", conf.User, conf.Password, net.JoinHostPort(conf.Host, strconv.Itoa(int(conf.Port))), name)
}

// Exec runs SQL statements, separated by semicolons.
func Exec(t testing.TB, dsn, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also in cleanups
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
}

// Lock takes an advisory lock, for as long as unlock is not called.
func Lock(t testing.TB, dsn string, number int) (unlock func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		_, err = conn.Exec(t.Context(), "SELECT pg_advisory_lock($1)", number)
	}
	if err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // the end of the connection gives the lock back
	t.Cleanup(unlock)
	return unlock
}

// Encrypt gives a server a certificate for a host, and returns the file of its authority. The server writes its files
// itself, because it requires that only its own user can read them.
func Encrypt(t testing.TB, dsn, host string) (authority string) {
	t.Helper()
	dir := t.TempDir()
	certtest.Write(t, dir, host)
	for from, to := range map[string]string{"tls.crt": "server.crt", "tls.key": "server.key"} {
		pem, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			t.Fatal(err)
		}
		Exec(t, dsn, fmt.Sprintf("COPY (SELECT unnest(string_to_array('%s', E'\\n'))) TO PROGRAM 'umask 077; cat > %s'", strings.TrimSpace(string(pem)), to))
	}
	Exec(t, dsn, "ALTER SYSTEM SET ssl = on")
	Exec(t, dsn, "SELECT pg_reload_conf()")
	return filepath.Join(dir, "ca.crt")
}
