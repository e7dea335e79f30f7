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

// Logger makes the logger of a process, which writes to w. The format is text or json; auto is text on a terminal and
// JSON elsewhere. The level is debug, info, warn or error.
//
// On a terminal every line is written at once. Elsewhere lines below warn wait up to a tenth of a second to be written
// together, because one system call for each access line would be a tenth of what a small request costs; [Run] writes
// the rest when it ends.
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
	linesHeld = 128 << 10              // bytes of lines that may wait: to write few of them costs as much as to make them
	linesWait = 100 * time.Millisecond // and for how long
)

// lines gathers log lines and writes them together.
type lines struct {
	w   io.Writer
	out sync.Mutex // who has it writes: lines stay in order, and the others go on meanwhile
	// spare is for the lines that come while others are written. Guarded by out.
	spare []byte

	mu     sync.Mutex
	held   []byte // lines that wait
	waited bool   // a timer is running, which has them written
}

// Write keeps one line, or writes all of them when they are many.
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

// flush writes the lines that wait, behind those that are being written.
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

// flushing is a handler whose records of a level and above are written at once, with all before them.
type flushing struct {
	slog.Handler
	lines *lines
	level slog.Level
	json  bool // as JSON, with nothing but what a record has
}

// Handle logs one record.
func (h flushing) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= h.level {
		err = errors.Join(err, h.lines.flush())
	}
	return err
}

// WithAttrs keeps the lines together with those of the handler it comes from.
func (h flushing) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler, h.json = h.Handler.WithAttrs(attrs), false
	return h
}

// WithGroup keeps the lines together with those of the handler it comes from.
func (h flushing) WithGroup(name string) slog.Handler {
	h.Handler, h.json = h.Handler.WithGroup(name), false
	return h
}

// flushLog writes the lines of a logger that [Logger] made.
func flushLog(log *slog.Logger) error {
	if h, ok := log.Handler().(flushing); ok {
		return h.lines.flush()
	}
	return nil
}
