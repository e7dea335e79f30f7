package admin

import (
	"bytes"
	"io"

	"tidings.example/eventsvc/internal/store"
)

// Written is the result of a backup or an export.
type Written struct {
	File     string `json:"file,omitempty"`
	Revision uint64 `json:"revision"`
	Events   *int64 `json:"events,omitempty"` // in an export
	Bytes    int64  `json:"bytes"`
}

// Count returns what counts in the result all that goes to w, with the progress of it: of the events of an export, of
// the bytes of a backup.
func (r *Written) Count(w io.Writer, progress store.Progress) Open {
	return func(revision uint64, total int64) io.Writer {
		r.Revision = revision
		return &writtenTo{Writer: w, result: r, progress: progress, total: total}
	}
}

// writtenTo counts bytes, and the lines of an export that are not bookmarks.
type writtenTo struct {
	io.Writer
	result   *Written
	progress store.Progress
	total    int64
	head     []byte // the beginning of the current line
}

func (c *writtenTo) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.result.Bytes += int64(n)
	if c.result.Events == nil {
		c.progress(c.result.Bytes, c.total)
		return n, err
	}
	for rest := p[:n]; len(rest) > 0; {
		line, more, ended := bytes.Cut(rest, []byte("\n"))
		c.head = append(c.head, line[:min(len(line), len(BookmarkHead)-len(c.head))]...)
		if rest = more; ended {
			if !bytes.Equal(c.head, BookmarkHead) {
				*c.result.Events++
			}
			c.head = c.head[:0]
		}
	}
	c.progress(*c.result.Events, c.total)
	return n, err
}
