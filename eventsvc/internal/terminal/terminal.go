// Package terminal writes text for a person at a terminal: cut and padded by the columns that it takes, and a line of
// progress. Output that is no terminal has width 0 and shows no progress.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"tidings.example/shared/printable"
)

// Width returns the columns of a terminal, or 0 if w is not one.
func Width(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 {
		return 80 // unknown, such as on a serial line
	}
	return int(size.Col)
}

// Colourful reports whether to use colours: w is a terminal that supports them, and the user has not set NO_COLOR
// (https://no-color.org).
func Colourful(w io.Writer) bool {
	return Width(w) > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Warning begins text in the colour of a warning, and Off ends text in any colour (ECMA-48).
const (
	Warning = "\x1b[33m"
	Off     = "\x1b[0m"
)

// Columns returns the width of a text on a terminal.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul), r >= 0xFF01 && r <= 0xFF60, r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	}
	return 1
}

// Cut shortens a text to a number of columns, with … at the end.
func Cut(text string, limit int) string {
	if Columns(text) <= limit {
		return text
	}
	n := 1 // the column of …
	for i, r := range text {
		if n += runeColumns(r); n > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// Pad extends a text to a number of columns.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-Columns(text), 0))
}

// MiB formats a number of bytes.
func MiB(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Progress shows the progress of long work on one line, which it rewrites. It does nothing if its output is not a
// terminal. It is not safe for concurrent use.
type Progress struct {
	w     io.Writer
	width int
	next  time.Time
	shown bool
}

// progressEvery is the time between two updates. Work that ends within progressAfter shows no progress.
const (
	progressEvery = 100 * time.Millisecond
	progressAfter = 500 * time.Millisecond
)

// NewProgress begins a work whose progress is shown on w.
func NewProgress(w io.Writer) *Progress {
	return &Progress{w: w, width: Width(w), next: time.Now().Add(progressAfter)}
}

// Show updates the line.
func (p *Progress) Show(format string, args ...any) {
	now := time.Now()
	if p.width == 0 || now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(progressEvery), true
	fmt.Fprint(p.w, "\r\x1b[K"+Cut(printable.OneLine(fmt.Sprintf(format, args...)), p.width-1))
}

// Clear removes the line, so that further output begins at the left.
func (p *Progress) Clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// Percent shows the progress of a command, and returns what clears it.
func Percent(w io.Writer, what string) (tell func(done, total int64), end func()) {
	bar := NewProgress(w)
	return func(done, total int64) { bar.Show("%s: %3d %%", what, 100*done/max(total, done, 1)) }, bar.Clear
}

// Files shows how much of files was read on a line of the terminal or, elsewhere, as a line for each 10 seconds.
func Files(w io.Writer, what string) (tell func(done, total int64), end func()) {
	bar, next := NewProgress(w), time.Now().Add(tellEvery)
	return func(done, total int64) {
		text := fmt.Sprintf("%s: %s read", what, MiB(done))
		if total > 0 {
			text = fmt.Sprintf("%s: %3d %%", what, 100*done/max(total, done, 1))
		}
		bar.Show("%s", text)
		if now := time.Now(); Width(w) == 0 && now.After(next) {
			next = now.Add(tellEvery)
			_, _ = fmt.Fprintln(w, text)
		}
	}, bar.Clear
}

const tellEvery = 10 * time.Second
