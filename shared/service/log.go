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

// Logger returns the logger of a process, which writes to w. The format is text, json or auto: text on a terminal and JSON
// otherwise. The level is debug, info, warn or error.
//
// On a terminal every line is written at once. Otherwise lines below warn wait up to a tenth of a second and are written
// together, because a system call for each access line is a tenth of the cost of a small request. [Run] writes the remaining
// lines when it ends.
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
	var handler slog.Handler
	switch format {
	case "text":
		handler = slog.NewTextHandler(out, options)
	case "json":
		handler = slog.NewJSONHandler(out, options)
	default:
		return nil, cli.Usagef("--log-format: %q is no format: use auto, text or json", format)
	}
	if terminal {
		return slog.New(flushing{handler, out, slog.Level(-1 << 30), format == "json"}), nil
	}
	return slog.New(flushing{handler, out, slog.LevelWarn, format == "json"}), nil
}

const (
	linesHeld = 128 << 10              // bytes of lines that may wait
	linesWait = 100 * time.Millisecond // how long they may wait
)

// lines collects log lines and writes them together.
type lines struct {
	w   io.Writer
	out sync.Mutex // held while writing, so that lines stay in order; mu is free meanwhile
	// spare is the buffer for lines that arrive while others are written. Guarded by out.
	spare []byte

	mu     sync.Mutex
	held   []byte // lines that wait
	waited bool   // a timer is running that will write them
}

// Write adds a line, and writes all lines if many wait.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	if !l.waited {
		l.waited = true
		time.AfterFunc(linesWait, l.waitedEnough)
	}
	l.held = append(l.held, line...)
	many := len(l.held) >= linesHeld
	l.mu.Unlock()
	if many {
		return len(line), l.flush()
	}
	return len(line), nil
}

func (l *lines) waitedEnough() {
	l.mu.Lock()
	l.waited = false
	l.mu.Unlock()
	_ = l.flush() // there is nowhere to report that the log cannot be written
}

// flush writes the lines that wait, after those that are being written.
func (l *lines) flush() error {
	l.out.Lock()
	defer l.out.Unlock()
	l.mu.Lock()
	full := l.held
	l.held = l.spare[:0]
	l.mu.Unlock()
	l.spare = full
	if len(full) == 0 {
		return nil
	}
	_, err := l.w.Write(full)
	return err
}

// flushing is a handler that writes records of a level and above at once, with all lines before them.
type flushing struct {
	slog.Handler
	lines *lines
	level slog.Level
	json  bool // the format is JSON and there are no attributes or groups besides those of a record
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
	h.Handler, h.json = h.Handler.WithAttrs(attrs), false
	return h
}

// WithGroup returns a handler that shares the lines of h.
func (h flushing) WithGroup(name string) slog.Handler {
	h.Handler, h.json = h.Handler.WithGroup(name), false
	return h
}

// flushLog writes the waiting lines of a logger that [Logger] returned.
func flushLog(log *slog.Logger) error {
	if h, ok := log.Handler().(flushing); ok {
		return h.lines.flush()
	}
	return nil
}
