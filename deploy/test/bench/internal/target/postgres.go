package target

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tidings.example/deploy/test/bench/internal/proc"
)

// Database is a PostgreSQL server with the table of clients, for this run.
type Database struct {
	// DSN is how tokensvc reaches it.
	DSN string

	dir     string
	process *proc.Process
}

// Stop stops the server and removes its data.
func (d *Database) Stop() error {
	var err error
	if d.process != nil {
		err = d.process.Stop()
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// Migrate makes the tables of eventsvc in a database.
func Migrate(ctx context.Context, bin, dsn string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "eventsvc"), "database", "migrate", "--store-dsn="+dsn).CombinedOutput()
	if err != nil {
		return fmt.Errorf("eventsvc database migrate: %w\n%s", err, out)
	}
	return nil
}

// ErrNotInstalled reports that this machine cannot run PostgreSQL.
var ErrNotInstalled = errors.New("skipped")

// StartPostgres starts a server from the installed programs, with its data in
// a new directory below dir and the clients in its table.
func StartPostgres(ctx context.Context, dir, log string, hashes []string) (*Database, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	attr, uid, err := postgresUser()
	if err != nil {
		return nil, err
	}
	dir, err = os.MkdirTemp(dir, "tidings-bench-postgres")
	if err != nil {
		return nil, fmt.Errorf("directory of PostgreSQL: %w", err)
	}
	d := &Database{dir: dir}
	addr, err1 := proc.FreeAddr()
	if err := errors.Join(err1, os.Chown(dir, uid, -1)); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	run := func(program string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
		cmd.SysProcAttr, cmd.Dir = attr, dir
		return cmd
	}
	if err := d.start(ctx, run, log, int(addr.Port()), hashes); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

// start makes a cluster of databases, starts its server and fills the table.
func (d *Database) start(ctx context.Context, run func(program string, args ...string) *exec.Cmd, log string, port int, hashes []string) error {
	data := filepath.Join(d.dir, "data")
	// Only this machine's users reach it, for the time of one row.
	if out, err := run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	server := run("postgres", "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
	server.Cancel = func() error { return nil } // Stop ends it, after tokensvc
	var err error
	if d.process, err = proc.Start(log, server); err != nil {
		return err
	}
	d.DSN = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	psql := func() *exec.Cmd {
		return run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "postgres")
	}
	return fillDatabase(ctx, psql, clientsSQL(hashes))
}

// postgresPrograms finds the folder of the server's programs: on PATH, or
// where Debian puts them.
func postgresPrograms() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%w: PostgreSQL is not installed (Debian: apt-get install postgresql)", ErrNotInstalled)
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// postgresUser returns the user that the server runs as, because PostgreSQL
// refuses to run as root.
func postgresUser() (*syscall.SysProcAttr, int, error) {
	if os.Getuid() != 0 {
		return nil, os.Getuid(), nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err == nil {
			return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, uid, nil
		}
	}
	return nil, 0, fmt.Errorf("%w: PostgreSQL does not run as root, and there is no user postgres or nobody", ErrNotInstalled)
}

// clientsSQL is the table as the reference has it, with the clients of the
// clients file.
func clientsSQL(hashes []string) string {
	var sql strings.Builder
	fmt.Fprintln(&sql, `CREATE TABLE clients (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, client_id text NOT NULL UNIQUE,
		client_secret text NOT NULL, client_name text NOT NULL, scope text NOT NULL);`)
	for i, hash := range hashes {
		fmt.Fprintf(&sql, "INSERT INTO clients (client_id, client_secret, client_name, scope) VALUES ('%s', '%s', 'Bench', 'events');\n", ClientID(i), hash)
	}
	return sql.String()
}

// fillDatabase runs the statements, once the server takes connections.
func fillDatabase(ctx context.Context, psql func() *exec.Cmd, sql string) error {
	for end := time.Now().Add(readyWithin); ; {
		ready := psql()
		ready.Args = append(ready.Args, "-c", "SELECT 1")
		out, err := ready.CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("PostgreSQL is not ready: %w\n%s", err, out)
		}
		time.Sleep(20 * time.Millisecond)
	}
	cmd := psql()
	cmd.Stdin = strings.NewReader(sql)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("table of clients: %w\n%s", err, out)
	}
	return nil
}
