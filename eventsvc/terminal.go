package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// terminalWidth is how many columns w has, 0 if it is no terminal.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 {
		return 80 // a terminal that does not know, such as that of a serial line
	}
	return int(size.Col)
}

// colourful reports whether w is to be coloured: a terminal that can, of a person who has not said no
// (https://no-color.org).
func colourful(w io.Writer) bool {
	return terminalWidth(w) > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// oneLine makes text of others fit for a terminal and a table: on one line, and without the control and formatting
// characters that would let an event's author move the cursor, colour the screen or reverse the text.
func oneLine(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
	return strings.TrimSpace(clean)
}

// columns is how wide text is on a terminal.
func columns(text string) int {
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

// cut shortens text to so many columns, with a sign that there is more.
func cut(text string, limit int) string {
	if columns(text) <= limit {
		return text
	}
	n := 1 // of the sign
	for i, r := range text {
		if n += runeColumns(r); n > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// pad fills text up to so many columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-columns(text), 0))
}

// progress is one line about long work, rewritten in place; on anything but a terminal it is silent.
type progress struct {
	w     io.Writer
	width int
	next  time.Time
	shown bool
}

// progressEvery is often enough for a person, and progressAfter is work that needs no word.
const (
	progressEvery = 100 * time.Millisecond
	progressAfter = 500 * time.Millisecond
)

func newProgress(w io.Writer) *progress {
	return &progress{w: w, width: terminalWidth(w), next: time.Now().Add(progressAfter)}
}

// show says how far the work is.
func (p *progress) show(format string, args ...any) {
	now := time.Now()
	if p.width == 0 || now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(progressEvery), true
	fmt.Fprint(p.w, "\r\x1b[K"+cut(fmt.Sprintf(format, args...), p.width-1))
}

// clear takes the line away, so that what follows begins at the left.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
