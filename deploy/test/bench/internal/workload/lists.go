package workload

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/url"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/stats"
	"tidings.example/deploy/test/bench/internal/target"
)

// keptLists: one in so many lists is kept and its events are counted.
const keptLists = 32

// Lists asks for unpaged lists of the n events of e, one after the other, with more header fields. It sets size to that
// of the first.
func Lists(s *target.Services, e *target.Events, n int, accept, fields string, size *int) load.Spec {
	request := e.Request("GET", e.Path(), "Accept: "+accept+"\r\n"+fields, "")
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: 1,
		Next: func(dst []byte, _ int) []byte { return append(dst, request...) },
		Keep: func(i int) bool { return i%keptLists == 0 },
		Check: func(i int, a *load.Answer) error {
			if *size == 0 {
				*size = a.Size
			}
			return checkList(i, a, *size, n, fields != "")
		},
	}
}

// checkList expects the same size in every list (but for the ages in tables),
// and in those that were kept the number of events.
func checkList(i int, a *load.Answer, size, n int, zipped bool) error {
	if err := load.Status(200)(i, a); err != nil {
		return err
	}
	if off := a.Size - size; off*100 > size || -off*100 > size {
		return fmt.Errorf("a list of %d bytes after one of %d", a.Size, size)
	}
	if i%keptLists != 0 {
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
	if got := countEvents(body); got != n {
		return fmt.Errorf("%d events in a list of %d: %.300s", got, n, body)
	}
	return nil
}

// countEvents counts the names of events in any of the formats of a list.
func countEvents(body []byte) int {
	marker := `"name":"` + load.NamePrefix
	if bytes.HasPrefix(body, []byte("k8s\x00")) {
		// metadata.name is field 1 of its message: tag, length, text.
		marker = "\x0a" + string(rune(len(target.EventName(0)))) + load.NamePrefix
	}
	return bytes.Count(body, []byte(marker))
}

// Selections asks for lists of e with a query again and again, and expects n events in each.
func Selections(s *target.Services, e *target.Events, query string, n int) load.Spec {
	request := e.All("GET", "?"+query, target.JSONType)
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: 1,
		Next: func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: func(i int, a *load.Answer) error {
			if err := load.Status(200)(i, a); err != nil {
				return err
			}
			if got := countEvents(a.Body); i%keptLists == 0 && got != n {
				return fmt.Errorf("%d events in a list of %d: %.300s", got, n, a.Body)
			}
			return nil
		},
	}
}

// Deletion deletes all events of e by one request. It sets size to the length of the answer.
func Deletion(s *target.Services, e *target.Events, size *int) load.Spec {
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: 1, Limit: 1,
		Next: func(dst []byte, _ int) []byte { return append(dst, e.All("DELETE", "", target.JSONType)...) },
		Keep: func(int) bool { return false },
		Check: func(i int, a *load.Answer) error {
			*size = a.Size
			return load.Status(200)(i, a)
		},
	}
}

// NoneLeft asks once whether nothing is left of the events of e.
func NoneLeft(s *target.Services, e *target.Events) load.Spec {
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: 1, Limit: 1,
		Next: func(dst []byte, _ int) []byte { return append(dst, e.All("GET", "?limit=1", target.JSONType)...) },
		Check: func(i int, a *load.Answer) error {
			if n := countEvents(a.Body); n > 0 {
				return fmt.Errorf("there are events left after the deletion: %.300s", a.Body)
			}
			return load.Status(200)(i, a)
		},
	}
}

// PageSize is the limit that client-go's pager asks for.
const PageSize = 500

// Pager goes through a list by pages, again and again.
type Pager struct {
	services *target.Services
	events   *target.Events
	total    int
	next     string // continue token
	begun    time.Time
	seen     int
	// Times is of whole lists.
	Times stats.Histogram
}

// NewPager makes a pager for the list of the total events of e.
func NewPager(s *target.Services, e *target.Events, total int) *Pager {
	return &Pager{services: s, events: e, total: total}
}

// Pages asks for one page after the other.
func (p *Pager) Pages() load.Spec {
	return load.Spec{Addr: p.services.API(), Secure: p.services.TLS, Conns: 1, Next: p.ask, Check: p.check}
}

// ask appends the request for the next page.
func (p *Pager) ask(dst []byte, _ int) []byte {
	query := fmt.Sprintf("?limit=%d", PageSize)
	if p.next == "" {
		p.begun, p.seen = time.Now(), 0
	} else {
		query += "&continue=" + url.QueryEscape(p.next)
	}
	return append(dst, p.events.All("GET", query, target.JSONType)...)
}

// check takes a page. The last one ends a list, which must have had all events.
func (p *Pager) check(i int, a *load.Answer) error {
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
