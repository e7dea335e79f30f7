package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/logstore"
	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// logs is a week of events in eventsvc and, with -peers, in a log store.
type logs struct {
	mix       target.Mix
	end       time.Time
	imported  result // by eventsvc, all files closed
	plain     int64  // bytes of all files before they were compressed
	peer      *logstore.Store
	peerLoad  result
	compacted result
}

const week = 7 * 24 * time.Hour

// logsStage has the rows of what people ask a log store about a week of events. Rows of the log store have the names of
// those of eventsvc with /peer behind them, and come before them.
func logsStage(events int) stage {
	l := &logs{mix: target.Mix{Events: events, Every: week / time.Duration(events), Life: 64}}
	million := events <= millionEvents
	pick := func(one, ten time.Duration) time.Duration {
		if million {
			return one
		}
		return ten
	}
	memory := int64(96 << 20)
	if million {
		memory = 64 << 20
	}
	s := stage{name: fmt.Sprintf("a week of %d events, as a log store has them", events), open: l.open, close: l.close}
	add := func(name string, g goal, run, peer func(*bench) (*result, error)) {
		s.rows = append(s.rows,
			row{name: "logs/" + name + "/peer", peers: true, run: peer},
			row{name: "logs/" + name, goal: g, run: run, beside: times("logs/" + name + "/peer")})
	}
	past := func(r *result) func(*bench) (*result, error) {
		return func(*bench) (*result, error) { copied := *r; return &copied, nil }
	}
	add("load", atLeast(45_000), past(&l.imported), past(&l.peerLoad))
	add("disk", goal{text: "≤ 160 B an event", met: func(_ *bench, r *result) bool { return r.disk <= int64(160*events) }}, l.disk, l.peerDisk)
	for _, q := range l.questions(pick) {
		add(q.name, p50Within(q.within), l.ask(&q), l.askPeer(&q))
	}
	add("memory", anonWithin(memory), restingMemory, func(*bench) (*result, error) {
		r := new(result)
		return r, r.space(l.peerPID())
	})
	ready := pick(time.Second, 3*time.Second)
	s.rows = append(s.rows, row{name: "logs/start", run: restarts(false), goal: goal{
		text: fmt.Sprintf("ready < %v", ready), met: func(_ *bench, r *result) bool { return r.p50 < ready },
	}}, row{name: "logs/mirror", run: l.mirrored, goal: atLeast(45_000)}, row{name: "logs/import", run: l.importedRunning, goal: atLeast(45_000)})
	return s
}

// question is what both are asked, each in its language.
type question struct {
	name         string
	within       time.Duration
	path, expect string        // of eventsvc, and what its answer has
	reach        time.Duration // back from the end
	query        string        // of the log store
}

// questions returns all of them, with times for a million events or for more.
func (l *logs) questions(pick func(million, more time.Duration) time.Duration) []question {
	uid := l.mix.UID(l.mix.Events / 2)
	return []question{
		{"word", pick(60*time.Millisecond, time.Second), "events?search=zzqqnothere&limit=100", `"items":[]`, week, "i(zzqqnothere) | limit 100"},
		{"part", pick(400*time.Millisecond, 4*time.Second), "events?search=qnotherez&limit=100", `"items":[]`, week, `~"(?i)qnotherez" | limit 100`},
		{"phrase", 10 * time.Millisecond, "events?namespace=team-07&limit=100&search=" + url.QueryEscape(`"back-off"`), "ack-off", week, `{namespace="team-07"} i("back-off") | sort by (_time) desc limit 100`},
		{"object", pick(5*time.Millisecond, 15*time.Millisecond), "events?limit=1000&fieldSelector=" + url.QueryEscape("regarding.uid="+uid), uid, week, `objectUid:="` + uid + `" | sort by (_time) desc limit 1000`},
		{"warnings", 3 * time.Millisecond, "groups?by=namespace&fieldSelector=" + url.QueryEscape("type=Warning"), `"groups"`, 24 * time.Hour, "type:=Warning | stats by (namespace) count() n"},
		{"histogram", 20 * time.Millisecond, "histogram?step=1h&by=type", `"buckets"`, week, "* | stats by (_time:1h, type) count() n"},
		{"reasons", 15 * time.Millisecond, "facets?by=reason", `"facets"`, week, "* | stats by (reason) count() n"},
	}
}

// ask is the row of a question to eventsvc.
func (l *logs) ask(q *question) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, "")
		if err != nil {
			return nil, err
		}
		size := 0
		spec := workload.Questions(b.up, e, "/query/v1/"+q.path+workload.Range("from", l.end.Add(-q.reach), "to", l.end), []string{q.expect}, &size)
		return l.asked(b, b.eventsvc(), spec, &size)
	}
}

// askPeer is the row of a question to the log store.
func (l *logs) askPeer(q *question) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		size := 0
		return l.asked(b, l.peerPID(), l.peer.Question(q.query, l.end.Add(-q.reach), l.end, &size), &size)
	}
}

func (l *logs) asked(b *bench, p pid, spec load.Spec, size *int) (*result, error) {
	r, err := b.load(p, "answers/s", spec)
	if err == nil {
		r.notef("%.1f kB", float64(*size)/1e3)
	}
	return r, err
}

func (l *logs) peerPID() pid { return pid{pid: l.peer.PID(), dir: l.peer.Dir} }

// open writes the events to files, has eventsvc import and compress them, and starts it.
func (l *logs) open(b *bench) error {
	l.end = time.Now().Truncate(time.Hour)
	l.mix.Begin = l.end.Add(-week)
	dir, err := os.MkdirTemp(b.tmp, "logs")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "events.json")
	if b.peers {
		err = l.openPeer(b, dir)
	}
	if err = errors.Join(err, l.write(file, l.mix.Line)); err != nil {
		return err
	}
	up := target.Prepared(b.bin, dir)
	size := func() (bytes int64) {
		if err == nil {
			bytes, err = proc.DiskBytes(up.DataDir())
		}
		return bytes
	}
	l.imported, err = l.command(up.OnData("import", file))
	l.plain = size()
	l.imported.notef("%d B an event before compressing", l.plain/int64(l.mix.Events))
	if err == nil {
		l.compacted, err = l.command(up.OnData("compact", "--compress"))
	}
	l.compacted.disk = size()
	if err = errors.Join(err, os.Remove(file)); err != nil {
		return err
	}
	return b.startIn(dir, logsOptions)
}

// logsOptions are the settings of servers that keep all events of a week.
var logsOptions = target.Options{MaxBytes: mixBytes, Events: []string{"--retention=1440h", "--history=1440h"}}

// mirrorPatience is the most that a mirror may take, which is less than the life of a token.
const mirrorPatience = 4 * time.Minute

// mirrored is the row of a mirror that copies all events into a server without any. Server CPU is that of this server.
func (l *logs) mirrored(b *bench) (r *result, err error) {
	to, stop, err := b.beside(logsOptions)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	source, err := proc.CPU(b.up.Events.PID())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(b.ctx, mirrorPatience)
	defer cancel()
	var mirror, used time.Duration
	r = &result{unit: "events/s"}
	err = b.measure(r, pid{pid: to.Events.PID(), dir: to.DataDir(), admin: to.EventsAdmin}, func() (n int, err error) {
		m, err := b.up.Mirror(ctx, to)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, m.Stop()) }()
		if err := to.AwaitHeld(ctx, l.mix.Events); err != nil {
			return 0, err
		}
		var err1, err2 error
		mirror, err1 = proc.CPU(m.PID())
		used, err2 = proc.CPU(b.up.Events.PID())
		return l.mix.Events, errors.Join(err1, err2)
	})
	each := time.Duration(l.mix.Events)
	r.notef("and %.1f µs at the mirror, %.1f µs at its source", float64(mirror/each)/1e3, float64((used-source)/each)/1e3)
	return r, err
}

// importedRunning is the row of an import into a running server without any events. Server CPU is that of this server.
func (l *logs) importedRunning(b *bench) (r *result, err error) {
	to, stop, err := b.beside(logsOptions)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	file := filepath.Join(to.Dir, "events.json")
	if err := l.write(file, l.mix.Line); err != nil {
		return nil, err
	}
	r = &result{unit: "events/s"}
	var command result
	err = b.measure(r, pid{pid: to.Events.PID(), dir: to.DataDir(), admin: to.EventsAdmin}, func() (n int, err error) {
		command, err = l.command(to.OnData("import", file))
		return l.mix.Events, err
	})
	r.notef("and %.1f µs at the command, %s", float64(command.serverCPU)/1e3, command.note)
	if err != nil {
		return r, err
	}
	held, err := to.Held(b.ctx)
	if err == nil && int(held) != l.mix.Events {
		err = fmt.Errorf("eventsvc holds %.0f of %d events", held, l.mix.Events)
	}
	return r, err
}

// command runs a command on the files or at a server, as a result for all events.
func (l *logs) command(cmd *exec.Cmd) (r result, err error) {
	begun := time.Now()
	said, err := cmd.CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("%v: %w: %s", cmd.Args[:2], err, said)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	r.rate, r.unit = float64(l.mix.Events)/time.Since(begun).Seconds(), "events/s"
	r.serverCPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()) / time.Duration(l.mix.Events)
	r.notef("at most %d MiB resident", used.Maxrss>>10)
	return r, nil
}

// write writes the events to a file.
func (l *logs) write(file string, line func(int) string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range l.mix.Events {
		if _, err := io.WriteString(w, line(i)); err != nil {
			return err
		}
	}
	return w.Flush()
}

// openPeer fills the log store.
func (l *logs) openPeer(b *bench, dir string) error {
	home := filepath.Join(dir, "peer")
	err := os.Mkdir(home, 0o700)
	if err == nil {
		l.peer, err = logstore.Start(b.ctx, home)
	}
	file := filepath.Join(dir, "flat.json")
	if err = errors.Join(err, l.write(file, l.mix.FlatLine)); err != nil {
		return err
	}
	l.peerLoad = result{unit: "events/s"}
	err = b.measure(&l.peerLoad, l.peerPID(), func() (int, error) { return l.mix.Events, l.peer.Fill(b.ctx, file) })
	l.peerLoad.notef("VictoriaLogs %s; one client; nothing is synced before an answer", logstore.Version)
	return errors.Join(err, l.peer.Merge(b.ctx), os.Remove(file))
}

func (l *logs) close() error {
	if l.peer == nil {
		return nil
	}
	return l.peer.Stop()
}

// disk is the row of what the files take when the log is compressed.
func (l *logs) disk(b *bench) (*result, error) {
	r := l.compacted
	size, err := target.StoreSizeOf(b.up.DataDir())
	each := func(bytes int64) int64 { return bytes / int64(l.mix.Events) }
	r.notef("%d B an event: log %d, index %d, the file that is written to %d", each(r.disk), each(size.Sealed), each(size.Index), each(size.Head))
	return &r, err
}

func (l *logs) peerDisk(*bench) (*result, error) {
	r := new(result)
	err := r.space(pid{dir: l.peer.Dir})
	r.notef("%d B an event", r.disk/int64(l.mix.Events))
	return r, err
}
