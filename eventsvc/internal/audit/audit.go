// Package audit keeps a log of who did what: one JSON line per request, written
// behind the requests' backs and never in their way. It holds names and
// decisions, never the content of events and never a token.
package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/service"
)

const (
	queueLength = 8192        // entries that wait for the disk
	flushAfter  = time.Second // an entry is in the file that long after its request at the latest
)

// Entry is one line.
type Entry struct {
	Time      time.Time `json:"time"` // of the request's end
	ID        string    `json:"id"`   // the answer's X-Request-Id
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
	MaxBytes int64  // a file that is larger makes room for a new one
	Files    int    // that are kept, with the current one
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Log is an audit log.
type Log struct {
	Config
	queue   chan *Entry
	entries *prometheus.CounterVec

	file *os.File
	out  *bufio.Writer
	size int64
}

// Open opens the log's file, at its end if it is there.
func Open(c Config) (*Log, error) {
	if c.Path == "" || c.MaxBytes <= 0 || c.Files < 1 {
		return nil, errors.New("audit: a path, a size and a number of files are needed")
	}
	l := &Log{
		Config: c, queue: make(chan *Entry, queueLength),
		entries: service.Register(c.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_audit_entries_total", Help: "Audit entries: written, or dropped because the disk is too slow or fails.",
		}, []string{"result"})),
	}
	for _, result := range []string{"written", "dropped"} {
		l.entries.WithLabelValues(result) // from zero on, for rates over the first
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return nil, err
	}
	return l, l.open()
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.out, l.size = f, bufio.NewWriterSize(f, 64<<10), info.Size()
	return nil
}

// Record keeps an entry. It never waits: when too many do already, the entry is
// dropped and counted.
func (l *Log) Record(e *Entry) {
	select {
	case l.queue <- e:
	default:
		l.entries.WithLabelValues("dropped").Inc()
	}
}

// Run writes what is recorded until ctx ends, and then what is left.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(flushAfter)
	defer tick.Stop()
	for {
		select {
		case e := <-l.queue:
			l.write(e)
		case <-tick.C:
			l.flush()
		case <-ctx.Done():
			for len(l.queue) > 0 {
				l.write(<-l.queue)
			}
			return errors.Join(l.out.Flush(), l.file.Close())
		}
	}
}

func (l *Log) write(e *Entry) {
	line, err := json.Marshal(e)
	if err == nil {
		if l.size > 0 && l.size+int64(len(line))+1 > l.MaxBytes {
			err = l.rotate()
		}
		if err == nil {
			_, err = l.out.Write(append(line, '\n'))
		}
	}
	if err != nil {
		l.failed(err)
		return
	}
	l.size += int64(len(line)) + 1
	l.entries.WithLabelValues("written").Inc()
}

func (l *Log) flush() {
	if err := l.out.Flush(); err != nil {
		l.failed(err)
	}
}

// failed counts an entry as lost and starts anew: a buffered writer that has
// failed once takes nothing more.
func (l *Log) failed(err error) {
	l.entries.WithLabelValues("dropped").Inc()
	l.Config.Log.Error("the audit log cannot be written", "file", l.Path, "error", err)
	l.out.Reset(l.file)
}

// rotate puts the full file aside and drops the oldest.
func (l *Log) rotate() error {
	if err := errors.Join(l.out.Flush(), l.file.Close()); err != nil {
		l.Config.Log.Error("the end of an audit file may be lost", "file", l.Path, "error", err)
	}
	for n := l.Files - 1; n > 0; n-- {
		from := l.Path
		if n > 1 {
			from = fmt.Sprintf("%s.%d", l.Path, n-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", l.Path, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return errors.Join(err, l.open())
		}
	}
	if l.Files == 1 {
		if err := os.Remove(l.Path); err != nil {
			return errors.Join(err, l.open())
		}
	}
	return l.open()
}
