// Package audit keeps a log of who did what: one JSON line per request. It holds
// names and decisions, never the content of events and never a token.
//
// [Handler] makes the entries of a listener. [Log] appends them to a file in the
// background, so that no request waits for the disk:
//
//	request -> queue (8192 entries) -> file, file.1, file.2, ...
//
// An entry counts as written when the file has it. The file is not synced: a
// power cut may take the entries of the last seconds, a crash of the process
// takes only what is still in the queue. While the file cannot be written the
// entries wait in the queue, the log tries again every second, and says so in
// [Log.Failing]. Entries that find the queue full are dropped and counted.
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

	"tidings.example/shared/service"
)

const (
	queueLength = 8192        // entries that wait for the file
	batchBytes  = 64 << 10    // what is gathered for one write
	retryAfter  = time.Second // a write that failed is tried again
)

// Entry is one line.
type Entry struct {
	Time      time.Time `json:"time"`              // of the request's end
	ID        string    `json:"id"`                // the answer's Audit-Id
	RequestID string    `json:"request,omitempty"` // the answer's X-Request-Id, as in the access line, where it differs
	Issuer    string    `json:"issuer,omitempty"`
	User      string    `json:"user,omitempty"`   // the token's subject
	Client    string    `json:"client,omitempty"` // and its client id
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
	Rule      string    `json:"rule,omitempty"`    // that allowed it, or why none did
	Remote    string    `json:"remote"`
	Agent     string    `json:"agent,omitempty"`
}

// Config says where the log is.
type Config struct {
	Path     string // the file; older ones are Path.1, Path.2, …
	MaxBytes int64  // an entry that would make the file larger goes into a new one
	Files    int    // that are kept, with the current one
	// RefuseWrites has [Log.Writable] refuse writes while the log fails.
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

	// Of Run alone.
	file *os.File
	size int64
	buf  bytes.Buffer // lines that are to be written next; the first may have been begun
}

// Open opens the log's file, at its end if it is there.
func Open(c Config) (*Log, error) {
	if c.Path == "" || c.MaxBytes <= 0 || c.Files < 1 {
		return nil, errors.New("audit: a path, a size and a number of files are needed")
	}
	entries := service.Register(c.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventsvc_audit_entries_total", Help: "Audit entries: written to the file, or dropped because too many waited for it.",
	}, []string{"result"}))
	l := &Log{
		Config: c, queue: make(chan *Entry, queueLength),
		written: entries.WithLabelValues("written"), dropped: entries.WithLabelValues("dropped"), // from zero on, for rates over the first
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
	return l, l.open()
}

// open opens the file. A line that a crash has left unfinished is ended, so that
// the next entry has a line of its own.
func (l *Log) open() error {
	f, err := os.OpenFile(l.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && unfinished(l.Path, info.Size()) {
		if _, err = f.WriteString("\n"); err == nil {
			info, err = f.Stat()
		}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// unfinished tells whether a file ends within a line. One that may only be
// appended to cannot be read, and is taken as it is.
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

// Record keeps an entry. It never waits: when too many do already, the entry is
// dropped and counted.
func (l *Log) Record(e *Entry) {
	select {
	case l.queue <- e:
	default:
		l.dropped.Inc()
		l.fail(fmt.Errorf("%d entries wait for the file, further ones are dropped", queueLength))
	}
}

// Failing is why the file does not have all entries, nil if it does or soon
// will. It is a check of readiness.
func (l *Log) Failing(context.Context) error {
	if err := l.failing.Load(); err != nil {
		return *err
	}
	return nil
}

// Writable is why writes are refused, nil if they are not. A nil log refuses
// nothing.
func (l *Log) Writable() error {
	if l == nil || !l.RefuseWrites {
		return nil
	}
	return l.Failing(context.Background())
}

// fail notes that entries do not reach the file. It logs the first of errors
// that follow each other.
func (l *Log) fail(err error) {
	if l.failing.Swap(&err) == nil {
		l.Config.Log.Error("the audit log cannot be written, entries wait", "file", l.Path, "writes_refused", l.RefuseWrites, "error", err)
	}
}

// caughtUp notes that the file has all entries.
func (l *Log) caughtUp() {
	if l.failing.Load() != nil {
		l.failing.Store(nil)
		l.Config.Log.Info("the audit log is written again", "file", l.Path)
	}
}

// Run writes what is recorded until ctx ends, and then what is left. What cannot
// be written then is dropped, counted, and an error.
func (l *Log) Run(ctx context.Context) error {
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

// finish writes what is left and closes the file.
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
	return errors.Join(err, l.file.Close())
}

// gather takes an entry and those that wait behind it.
func (l *Log) gather(e *Entry) {
	for lines := json.NewEncoder(&l.buf); ; e = <-l.queue {
		if err := lines.Encode(e); err != nil {
			l.dropped.Inc()
			l.Config.Log.Error("audit entry", "id", e.ID, "error", err)
		}
		if len(l.queue) == 0 || l.buf.Len() >= batchBytes {
			return
		}
	}
}

// write writes what was gathered, into new files where it does not fit. After an
// error it goes on where it stopped, in the middle of a line if need be.
func (l *Log) write() error {
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

// fits is how much of what was gathered the file has room for, in whole lines.
// An empty file has room for a line of any length.
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

// rotate puts the full file aside and begins a new one. After an error it may be
// called again: what was put aside already stays where it is.
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

// shift makes the path free for a new file. Files move up only as far as the
// first number that is free, so that a shift that is repeated after an error
// pushes out no file in vain.
func (l *Log) shift() error {
	if !exists(l.Path) {
		return nil // it was put aside before
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

// numbered is the path of a file: 0 is the current one, 1 the one before.
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
