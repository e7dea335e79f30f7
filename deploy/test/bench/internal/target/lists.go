package target

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/url"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/stats"
)

// KeptLists is how often a list is kept and its events are counted: one in so many.
const KeptLists = 32

// CheckList expects the same size in every list (but for the ages in tables),
// and in those that were kept the number of events.
func CheckList(i int, a *load.Answer, size, n int, zipped bool) error {
	if err := load.Status(200)(i, a); err != nil {
		return err
	}
	if off := a.Size - size; off*100 > size || -off*100 > size {
		return fmt.Errorf("a list of %d bytes after one of %d", a.Size, size)
	}
	if i%KeptLists != 0 {
		return nil
	}
	body := a.Body
	if zipped {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("not compressed, Content-Encoding is %q: %w", a.Encoding, err)
		}
		if body, err = io.ReadAll(z); err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
	}
	if got := CountEvents(body); got != n {
		return fmt.Errorf("%d events in a list of %d: %.300s", got, n, body)
	}
	return nil
}

// CountEvents counts the names of events in any of the formats of a list.
func CountEvents(body []byte) int {
	marker := `"name":"` + load.NamePrefix
	if bytes.HasPrefix(body, []byte("k8s\x00")) {
		// metadata.name is field 1 of its message: tag, length, text.
		marker = "\x0a" + string(rune(len(EventName(0)))) + load.NamePrefix
	}
	return bytes.Count(body, []byte(marker))
}

// PageSize is the limit that client-go's pager asks for.
const PageSize = 500

// Pager goes through a list by pages, again and again.
type Pager struct {
	events *Events
	total  int
	next   string // continue token
	begun  time.Time
	seen   int
	// Times are those of whole lists.
	Times stats.Histogram
}

// NewPager makes a pager for a list of total events.
func NewPager(e *Events, total int) *Pager { return &Pager{events: e, total: total} }

// Ask appends the request for the next page.
func (p *Pager) Ask(dst []byte, _ int) []byte {
	query := fmt.Sprintf("?limit=%d", PageSize)
	if p.next == "" {
		p.begun, p.seen = time.Now(), 0
	} else {
		query += "&continue=" + url.QueryEscape(p.next)
	}
	return append(dst, p.events.All("GET", query, JSONType)...)
}

// Check takes a page. The last one ends a list, which must have had all events.
func (p *Pager) Check(i int, a *load.Answer) error {
	if err := load.Status(200)(i, a); err != nil {
		return err
	}
	// The metadata of a list comes before its items.
	_, rest, _ := bytes.Cut(a.Body[:min(len(a.Body), 2048)], []byte(`"continue":"`))
	token, _, _ := bytes.Cut(rest, []byte(`"`))
	p.next = string(token)
	p.seen += bytes.Count(a.Body, []byte(`"name":"`+load.NamePrefix))
	if p.next != "" {
		return nil
	}
	p.Times.Add(time.Since(p.begun))
	if p.seen != p.total {
		return fmt.Errorf("%d events in the pages of a list of %d", p.seen, p.total)
	}
	return nil
}
