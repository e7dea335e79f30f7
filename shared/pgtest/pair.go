package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Pair is a primary with a synchronous standby.
type Pair struct {
	// DSN leads to the primary of the two, for clients that refuse a standby.
	DSN string

	primary, standby *process
	data             string // of the standby
}

// StartPair returns a primary whose commits wait for a standby. Both are stopped after the test.
func StartPair(t testing.TB) *Pair {
	t.Helper()
	bin := required(t)
	var err error
	p := &Pair{}
	t.Cleanup(func() {
		for _, one := range []*process{p.standby, p.primary} {
			if one != nil {
				one.stop()
			}
		}
	})
	if p.primary, err = prepared(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	s := p.primary
	p.data = filepath.Join(s.dir, "standby")
	if err := s.program(t.Context(), "cp", "-R", "-p", s.data(), p.data); err != nil { // before its first start, a backup
		t.Fatal(err)
	}
	if err := s.serve(s.data()); err != nil {
		t.Fatal(err)
	}
	if err := s.program(t.Context(), "sh", "-c", `touch "$1"/standby.signal && echo "$2" >>"$1"/postgresql.auto.conf`, "sh", p.data,
		fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%s user=postgres password=%s'", s.port, s.password)); err != nil {
		t.Fatal(err)
	}
	p.standby = &process{bin: s.bin, dir: s.dir, attr: s.attr, password: s.password}
	if err := p.standby.serve(p.data); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*process{s, p.standby} {
		if err := waitFor(t.Context(), one.dsn); err != nil {
			t.Fatal(err)
		}
	}
	Exec(t, p.primary.dsn, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	Exec(t, p.primary.dsn, "SELECT pg_reload_conf()")
	p.DSN = fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%s,127.0.0.1:%s/postgres?sslmode=disable", s.password, s.port, p.standby.port)
	return p
}

// KillPrimary kills all processes of the primary, as when its machine is lost, and promotes the standby. The first
// process is only stopped until the others are gone: they would notice its end, and show commits that the standby does
// not have.
func (p *Pair) KillPrimary(t testing.TB) {
	t.Helper()
	p.primary.signal(t, syscall.SIGKILL)
	_ = p.primary.cmd.Wait()
	p.Promote(t)
}

// PausePrimary stops all processes of the primary until the test ends: connections stay open, and nothing is answered.
func (p *Pair) PausePrimary(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { p.primary.signal(t, syscall.SIGCONT) })
	p.primary.signal(t, syscall.SIGSTOP)
}

// PauseStandby stops all processes of the standby until ResumeStandby, or until the test ends.
func (p *Pair) PauseStandby(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { p.ResumeStandby(t) })
	p.standby.signal(t, syscall.SIGSTOP)
}

// ResumeStandby has the standby go on.
func (p *Pair) ResumeStandby(t testing.TB) { t.Helper(); p.standby.signal(t, syscall.SIGCONT) }

// signal sends a signal to all processes of a server, to the first one last.
func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	first := p.cmd.Process
	if err := first.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	others, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first.Pid, first.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range strings.Fields(string(others)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, s)
		}
	}
	if err := first.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Promote makes the standby a primary.
func (p *Pair) Promote(t testing.TB) {
	t.Helper()
	if err := p.standby.program(t.Context(), filepath.Join(p.standby.bin, "pg_ctl"), "promote", "-D", p.data, "-w"); err != nil {
		t.Fatal(err)
	}
}

// Asynchronous has the primary acknowledge commits that no standby has.
func (p *Pair) Asynchronous(t testing.TB) {
	t.Helper()
	Exec(t, p.primary.dsn, "ALTER SYSTEM SET synchronous_standby_names = ''")
	Exec(t, p.primary.dsn, "SELECT pg_reload_conf()")
}

// RestartPrimary ends the primary at once, without waiting for anything, and starts it again under its address.
func (p *Pair) RestartPrimary(t testing.TB) {
	t.Helper()
	if err := p.primary.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = p.primary.cmd.Wait()
	if err := p.primary.run(p.primary.data()); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(t.Context(), p.primary.dsn); err != nil {
		t.Fatal(err)
	}
}

// Attach has the standby follow the primary again.
func (p *Pair) Attach(t testing.TB) {
	t.Helper()
	Exec(t, p.standby.dsn, fmt.Sprintf("ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port=%s user=postgres password=%s'", p.primary.port, p.primary.password))
	Exec(t, p.standby.dsn, "SELECT pg_reload_conf()")
}

// Detach ends the standby's connection to the primary, when it has what was committed so far: it gets no more commits.
func (p *Pair) Detach(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.primary.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var written string
	if err := conn.QueryRow(t.Context(), "SELECT pg_current_wal_flush_lsn()::text").Scan(&written); err != nil {
		t.Fatal(err)
	}
	Exec(t, p.standby.dsn, fmt.Sprintf("DO $$ BEGIN WHILE pg_last_wal_replay_lsn() < '%s' LOOP PERFORM pg_sleep(0.01); END LOOP; END $$", written))
	Exec(t, p.standby.dsn, "ALTER SYSTEM SET primary_conninfo = ''")
	Exec(t, p.standby.dsn, "SELECT pg_reload_conf()")
	Exec(t, p.standby.dsn, `DO $$ BEGIN WHILE EXISTS (SELECT FROM pg_stat_wal_receiver) LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$`)
}
