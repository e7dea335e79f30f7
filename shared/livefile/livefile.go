// Package livefile follows a file of settings while the service runs.
//
// # Contract
//
// [Open] reads the file; a mistake in it is an error. [File.Run] reads it again once a second, and at once after a
// SIGHUP. A new version is checked as a whole before it comes into force. A version with a mistake changes nothing. It
// is logged and counted once. If it names other files ([Config.Beside]), it is tried again until it is good, because
// the mistake may be in one of them.
package livefile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lookAgain is how often the file is read and compared. Reading a few kilobytes is simpler than watching for each of
// the ways in which editors, Kubernetes and configuration management replace files.
const lookAgain = time.Second

// The values of the label of the counter of versions.
const (
	resultOK    = "ok"
	resultError = "error"
)

// Config says which file is followed and what is done with it. Apply and Log are required.
type Config struct {
	Path     string                  // "": there is no file, and nothing is applied
	MaxBytes int                     // of the file
	Apply    func(data []byte) error // checks a version and puts it into force; after an error nothing may have changed
	Beside   func() string           // what else Apply looks at: when this changes, the file counts as changed; may be nil
	Changed  func()                  // called after each version but the first has come into force; may be nil
	Log      *slog.Logger

	// The metrics are Metric_reloads_total, later versions by result, and Metric_file_good. Their help calls the file
	// What.
	Metric, What string
	Registry     prometheus.Registerer // nil: they are not published
}

// File is a file that is followed. It is safe for concurrent use.
type File struct {
	c       Config
	reloads *prometheus.CounterVec
	good    prometheus.Gauge

	mu     sync.Mutex
	data   []byte // the last version, good or bad
	beside string // what Beside returned with it
	failed string // the error of the last version; empty: it is in force
}

// Open reads the file and puts it into force.
func Open(c Config) (*File, error) {
	f := &File{
		c: c,
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: c.Metric + "_reloads_total", Help: "New versions of the " + c.What + " file, by result.",
		}, []string{"result"}),
		good: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: c.Metric + "_file_good", Help: "1 if the " + c.What + " file is in force, 0 if it is bad and the version before stays in force.",
		}),
	}
	if c.Registry != nil {
		c.Registry.MustRegister(f.reloads, f.good)
	}
	f.good.Set(1)
	for _, result := range []string{resultOK, resultError} {
		f.reloads.WithLabelValues(result) // shown from the start, so that the first reload is an increase
	}
	if c.Path == "" {
		return f, nil
	}
	f.beside = f.now()
	var err error
	if f.data, err = f.read(); err != nil {
		return nil, err
	}
	if err := f.apply(f.data); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	return f, nil
}

// Run follows the file until ctx ends. It always returns nil. Without a file it follows nothing, but keeps a SIGHUP
// from ending the process.
func (f *File) Run(ctx context.Context) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
		case <-tick.C:
		}
		f.Reload()
	}
}

// Reload reads the file and puts it into force if it is new and good.
func (f *File) Reload() { f.reload(false) }

// Recheck is [File.Reload] of a file that may be the same. It is called after something has changed that Apply compares
// the file with.
func (f *File) Recheck() { f.reload(true) }

func (f *File) reload(again bool) {
	if f.c.Path == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	beside := f.now()
	data, err := f.read()
	same := (data == nil) == (f.data == nil) && bytes.Equal(data, f.data) && beside == f.beside // nil: it could not be read
	if err == nil {
		if same && (f.failed == "" || f.c.Beside == nil) && !again {
			return
		}
		if err = f.apply(data); err == nil {
			f.data, f.beside, f.failed = data, beside, ""
			f.reloads.WithLabelValues(resultOK).Inc()
			f.good.Set(1)
			f.c.Log.Info("a new version of a file is in force", "file", f.c.Path)
			if f.c.Changed != nil {
				f.c.Changed()
			}
			return
		}
	}
	if same && f.failed == err.Error() {
		return // reported already
	}
	f.data, f.beside, f.failed = data, beside, err.Error()
	f.reloads.WithLabelValues(resultError).Inc()
	f.good.Set(0)
	f.c.Log.Error("a file is bad, the version before stays in force", "file", f.c.Path, "error", err)
}

func (f *File) now() string {
	if f.c.Beside == nil {
		return ""
	}
	return f.c.Beside()
}

func (f *File) read() ([]byte, error) {
	file, err := os.Open(f.c.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(file, int64(f.c.MaxBytes)+1))
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (f *File) apply(data []byte) error {
	if len(data) > f.c.MaxBytes {
		return fmt.Errorf("the file has more than %d bytes", f.c.MaxBytes)
	}
	return f.c.Apply(data)
}
