package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"tidings.example/shared/cli"
)

// Logger returns the logger of a process, which writes to w. The format is text, json or auto: text on a terminal and
// JSON otherwise. The level is debug, info, warn or error.
//
// On a terminal every line is written at once. Otherwise lines below warn wait up to a tenth of a second and are
// written together, because a system call for each access line is a tenth of the cost of a small request. [Run] writes
// the remaining lines when it ends.
func Logger(w *os.File, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, cli.Usagef("--log-level: %q is no level: use debug, info, warn or error", level)
	}
	terminal := false
	if info, err := w.Stat(); err == nil {
		terminal = info.Mode()&os.ModeCharDevice != 0
	}
	if format == "auto" || format == "" {
		format = "json"
		if terminal {
			format = "text"
		}
	}
	out := &lines{w: w}
	options := &slog.HandlerOptions{Level: threshold}
	h := flushing{lines: out, level: slog.LevelWarn}
	if terminal {
		h.level = threshold
	}
	switch format {
	case "text":
		h.Handler = slog.NewTextHandler(out, options)
	case "json":
		h.Handler = slog.NewJSONHandler(out, options)
	default:
		return nil, cli.Usagef("--log-format: %q is no format: use auto, text or json", format)
	}
	return slog.New(h), nil
}

const (
	linesHeld = 128 << 10              // bytes of lines that may wait
	linesWait = 100 * time.Millisecond // how long they may wait
)

// lines collects log lines and writes them together.
type lines struct {
	w io.Writer

	mu    sync.Mutex
	held  []byte // lines that wait
	timed bool   // a timer is running that will write them
}

// Write adds a line, and writes all lines if many wait.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, line...)
	if len(l.held) >= linesHeld {
		return len(line), l.write()
	}
	if !l.timed {
		l.timed = true
		time.AfterFunc(linesWait, func() { _ = l.flush() }) // there is nowhere to report that the log cannot be written
	}
	return len(line), nil
}

// flush writes the lines that wait.
func (l *lines) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timed = false
	return l.write()
}

// write is flush for a caller who holds the mutex.
func (l *lines) write() error {
	if len(l.held) == 0 {
		return nil
	}
	_, err := l.w.Write(l.held)
	l.held = l.held[:0]
	return err
}

// flushing is a handler that writes records of a level and above at once, with all lines before them.
type flushing struct {
	slog.Handler
	lines *lines
	level slog.Level
}

// Handle logs one record.
func (h flushing) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= h.level {
		err = errors.Join(err, h.lines.flush())
	}
	return err
}

// WithAttrs returns a handler that shares the lines of h.
func (h flushing) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup returns a handler that shares the lines of h.
func (h flushing) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// flushLog writes the waiting lines of a logger that [Logger] returned.
func flushLog(log *slog.Logger) error {
	if h, ok := log.Handler().(flushing); ok {
		return h.lines.flush()
	}
	return nil
}
