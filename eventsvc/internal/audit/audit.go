// Package audit keeps a log of who did what: one JSON line per request. It holds
// names and decisions, never the content of events and never a token.
//
// [Handler] makes the entries of a listener. [Log] appends them to a file in the
// background, so that no request waits for the disk:
//
//	request -> queue (8192 entries) -> file, file.1, file.2, ...
//
// An entry counts as written when the file has it. The file is not synced: a power
// cut may lose the entries of the last seconds, a crash of the process only those in
// the queue. While the file cannot be written, entries wait in the queue, the log
// tries again every second, and [Log.Failing] returns the error. An entry that finds
// the queue full is dropped and counted.
package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/shared/service"
)

const (
	queueLength = 8192        // entries that wait for the file
	batchBytes  = 64 << 10    // collected for one write
	retryAfter  = time.Second // between two attempts to write
)

// Entry is one line.
type Entry struct {
	Time      time.Time `json:"time"`              // of the request's end
	ID        string    `json:"id"`                // the answer's Audit-Id
	RequestID string    `json:"request,omitempty"` // the answer's X-Request-Id, as in the access line, where it differs
	Issuer    string    `json:"issuer,omitempty"`
	User      string    `json:"user,omitempty"`   // the token's subject
	Client    string    `json:"client,omitempty"` // and its client id
	Auth      string    `json:"auth,omitempty"`   // basic: by a user and a password; front-proxy: kube-apiserver names the user; empty: by a token
	Verb      string    `json:"verb,omitempty"`   // of a resource; empty for other paths
	Group     string    `json:"group,omitempty"`
	Resource  string    `json:"resource,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	Method    string    `json:"method"`
	Path      string    `json:"path"` // without the query
	Code      int       `json:"code"`
	Millis    float64   `json:"ms"`
	Allowed   *bool     `json:"allowed,omitempty"` // by the policy
	Rule      string    `json:"rule,omitempty"`    // the rule that allowed it, or the reason of the refusal
	Tool      string    `json:"tool,omitempty"`    // of MCP that was called
	Wrote     Wrote     `json:"wrote,omitempty"`   // by a request that creates many events
	// Impersonate is the user that the request asked to act as. Such requests are refused.
	Impersonate *Impersonate `json:"impersonate,omitempty"`
	Remote      string       `json:"remote"`
	Agent       string       `json:"agent,omitempty"`
}

// Impersonate is what the headers of an impersonation ask for.
type Impersonate struct {
	User   string `json:"user,omitempty"`
	Groups int    `json:"groups,omitempty"` // how many
}

// Config says where the log is.
type Config struct {
	Path     string // the file; older ones are Path.1, Path.2, …
	MaxBytes int64  // largest size of a file; a new one is begun before an entry that would exceed it
	Files    int    // files that are kept, including the current one
	// RefuseWrites makes [Log.Writable] return an error while the log fails.
	RefuseWrites bool
	Log          *slog.Logger
	Registry     prometheus.Registerer
}

// Log is an audit log.
type Log struct {
	Config
	queue   chan *Entry
	written prometheus.Counter
	dropped prometheus.Counter
	failing atomic.Pointer[error]

	// Used by Run only.
	file  *os.File // nil if the disk was too full to make it
	size  int64
	ended bool         // the file ends with a whole line
	buf   bytes.Buffer // lines to write next; a part of the first may be written already
}

// Open opens the file of the log, and appends to it if it exists. A full disk is no error but makes the log fail until
// there is room: whoever reads events can be served, and the room comes from retention.
func Open(c Config) (*Log, error) {
	if c.Path == "" || c.MaxBytes <= 0 || c.Files < 1 {
		return nil, errors.New("audit: a path, a size and a number of files are needed")
	}
	entries := service.Register(c.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventsvc_audit_entries_total", Help: "Audit entries: written to the file, or dropped because too many waited for it.",
	}, []string{"result"}))
	l := &Log{
		Config: c, queue: make(chan *Entry, queueLength),
		written: entries.WithLabelValues("written"), dropped: entries.WithLabelValues("dropped"), // exposed at zero, so that a rate includes the first entry
	}
	service.Register(c.Registry, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "eventsvc_audit_failing", Help: "1 while the audit file cannot be written or cannot keep up, else 0.",
	}, func() float64 {
		if l.failing.Load() != nil {
			return 1
		}
		return 0
	}))
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return nil, err
	}
	err := l.open()
	if disk.IsFull(err) {
		l.fail(err)
		err = nil
	}
	return l, err
}

// open opens the file. If a crash has left an incomplete line, the next write ends it, so that
// the next entry begins a line.
func (l *Log) open() error {
	f, err := os.OpenFile(l.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size, l.ended = f, info.Size(), !unfinished(l.Path, info.Size())
	return nil
}

// unfinished reports whether a file ends within a line. It returns false for a file
// that cannot be read, such as one with permission to append only.
func unfinished(path string, size int64) bool {
	if size == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	last := make([]byte, 1)
	_, err = f.ReadAt(last, size-1)
	return err == nil && last[0] != '\n'
}

// Record adds an entry to the queue. It never blocks: if the queue is full, the entry
// is dropped and counted.
func (l *Log) Record(e *Entry) {
	select {
	case l.queue <- e:
	default:
		l.dropped.Inc()
		l.fail(fmt.Errorf("%d entries wait for the file, further ones are dropped", queueLength))
	}
}

// Failing returns an error while the file cannot be written, or does not keep up. It
// is a readiness check.
func (l *Log) Failing(context.Context) error {
	if err := l.failing.Load(); err != nil {
		return *err
	}
	return nil
}

// Writable returns an error if writes must be refused. A nil log refuses none.
func (l *Log) Writable() error {
	if l == nil || !l.RefuseWrites {
		return nil
	}
	return l.Failing(context.Background())
}

// fail sets the error of [Log.Failing]. Of consecutive errors it logs only the first.
func (l *Log) fail(err error) {
	if l.failing.Swap(&err) == nil {
		l.Config.Log.Error("the audit log cannot be written, entries wait", "file", l.Path, "writes_refused", l.RefuseWrites, "error", err)
	}
}

// caughtUp clears the error of [Log.Failing], because the file has all entries.
func (l *Log) caughtUp() {
	if l.failing.Load() != nil {
		l.failing.Store(nil)
		l.Config.Log.Info("the audit log is written again", "file", l.Path)
	}
}

// Run writes entries until ctx ends, and then those that are left. If these cannot be
// written, it drops and counts them, and returns an error. With a nil log it waits.
func (l *Log) Run(ctx context.Context) error {
	if l == nil {
		<-ctx.Done()
		return nil
	}
	for {
		select {
		case e := <-l.queue:
			l.gather(e)
		case <-ctx.Done():
			return l.finish()
		}
		for err := l.write(); err != nil; err = l.write() {
			l.fail(err)
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
				return l.finish()
			}
		}
		if len(l.queue) == 0 {
			l.caughtUp()
		}
	}
}

// finish writes the remaining entries and closes the file.
func (l *Log) finish() (err error) {
	for err == nil && l.buf.Len()+len(l.queue) > 0 {
		if l.buf.Len() == 0 {
			l.gather(<-l.queue)
		}
		err = l.write()
	}
	if err != nil {
		l.fail(err)
		lost := bytes.Count(l.buf.Bytes(), newline) + len(l.queue)
		l.dropped.Add(float64(lost))
		err = fmt.Errorf("the last %d entries of the audit log are lost: %w", lost, err)
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}

// gather encodes an entry and those that wait behind it, up to about batchBytes.
func (l *Log) gather(e *Entry) {
	lines := json.NewEncoder(&l.buf)
	lines.SetEscapeHTML(false) // no page shows a line as it is
	for ; ; e = <-l.queue {
		if err := lines.Encode(e); err != nil {
			l.dropped.Inc()
			l.Config.Log.Error("audit entry", "id", e.ID, "error", err)
		}
		if len(l.queue) == 0 || l.buf.Len() >= batchBytes {
			return
		}
	}
}

// write writes the collected lines, and begins a new file when they do not fit. After
// an error the next call continues where it stopped, even in the middle of a line.
func (l *Log) write() error {
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	if !l.ended {
		n, err := l.file.Write(newline)
		l.size += int64(n)
		if err != nil {
			return err
		}
		l.ended = true
	}
	for l.buf.Len() > 0 {
		fits := l.fits()
		if fits == 0 {
			if err := l.rotate(); err != nil {
				return err
			}
			continue
		}
		n, err := l.file.Write(l.buf.Bytes()[:fits])
		l.written.Add(float64(bytes.Count(l.buf.Next(n), newline)))
		l.size += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// fits returns the number of bytes, in whole lines, that the file has room for. An
// empty file has room for a line of any length.
func (l *Log) fits() int {
	lines, room := l.buf.Bytes(), l.MaxBytes-l.size
	switch {
	case int64(len(lines)) <= room:
		return len(lines)
	case l.size == 0:
		return bytes.IndexByte(lines, '\n') + 1
	case room <= 0:
		return 0
	default:
		return bytes.LastIndexByte(lines[:room], '\n') + 1
	}
}

var newline = []byte{'\n'}

// rotate renames the full file and begins a new one. After an error it may be called
// again, and does not rename a file twice.
func (l *Log) rotate() error {
	if err := l.shift(); err != nil {
		return err
	}
	full := l.file
	if err := l.open(); err != nil {
		return err
	}
	if err := full.Close(); err != nil {
		l.Config.Log.Error("the end of an audit file may be lost", "file", l.numbered(1), "error", err)
	}
	return nil
}

// shift renames the files so that the path is free. Files move only up to the first
// free number, so that a shift that is repeated after an error removes no file.
func (l *Log) shift() error {
	if !exists(l.Path) {
		return nil // an earlier call has renamed it
	}
	if l.Files == 1 {
		return os.Remove(l.Path)
	}
	last := 1
	for last < l.Files-1 && exists(l.numbered(last)) {
		last++
	}
	for n := last; n > 0; n-- {
		if err := os.Rename(l.numbered(n-1), l.numbered(n)); err != nil {
			return err
		}
	}
	return nil
}

// numbered returns the path of a file: 0 is the current file, 1 the one before.
func (l *Log) numbered(n int) string {
	if n == 0 {
		return l.Path
	}
	return fmt.Sprintf("%s.%d", l.Path, n)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
