package load

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"tidings.example/deploy/test/bench/internal/stats"
)

// Where a line of a watch carries what is checked. The metadata comes first in
// every event, so that the searches are short.
const (
	nameMarker     = `"name":"` + NamePrefix
	revisionMarker = `"resourceVersion":"`
	addedMarker    = `{"type":"ADDED"`
	errorMarker    = `{"type":"ERROR"`
)

// NamePrefix begins the names of all events that the benchmark makes; the
// number of the event follows, in ten digits.
const NamePrefix = "bench-"

// maxEvents bounds the memory that a watcher's list of seen events takes.
const maxEvents = 1 << 24

// nameDigits is the width of the number in a name.
const nameDigits = 10

// Audience is a number of watchers of the same events. It verifies for each
// of them that every event arrives, exactly once, in order of revision.
type Audience struct {
	// Latency is from an event's intended start to its arrival.
	Latency stats.Histogram
	// Deliveries counts the events that arrived at any watcher, Bytes their size.
	Deliveries, Bytes int
	// Cuts counts the streams that the server ended and that were resumed.
	Cuts int

	loop     *Loop
	spec     WatchSpec
	watchers []*watcher
}

// watcher is one stream.
type watcher struct {
	audience *Audience
	conn     *conn
	answer   Answer
	partial  []byte // of a line that has not arrived whole
	revision uint64 // of the last event
	seen     []uint64
	count    int
	now      time.Duration
	err      error
}

// sampleEvery: one in so many deliveries is passed to Sample.
const sampleEvery = 997

// WatchSpec says what an Audience watches.
type WatchSpec struct {
	Addr     netip.AddrPort
	Secure   *tls.Config // TLS with HTTP/2 instead of plain HTTP/1.1
	Watchers int
	Revision uint64 // the events after it are watched
	// Request appends a watch request from a revision.
	Request func(dst []byte, revision uint64) []byte
	// Began is the intended start of the create of event i.
	Began func(i int) time.Duration
	// Sample judges the whole line of some deliveries.
	Sample func(line []byte) error
}

// NewAudience opens the watches.
func (l *Loop) NewAudience(spec WatchSpec) (*Audience, error) {
	au := &Audience{loop: l, spec: spec}
	for range spec.Watchers {
		w := &watcher{audience: au, revision: spec.Revision}
		w.answer.sink = w.take
		au.watchers = append(au.watchers, w)
		if err := w.open(); err != nil {
			return nil, err
		}
	}
	if err := l.Run(grace, au.open); err != nil {
		return nil, err
	}
	if !au.open() {
		return nil, fmt.Errorf("not all of %d watches are answered after %v", spec.Watchers, grace)
	}
	return au, nil
}

// open tells that every watch is answered.
func (au *Audience) open() bool {
	for _, w := range au.watchers {
		if w.answer.Status == 0 {
			return false
		}
	}
	return true
}

// Complete tells that every watcher has seen all of n events.
func (au *Audience) Complete(n int) bool {
	for _, w := range au.watchers {
		if w.count < n {
			return false
		}
	}
	return true
}

// Verify waits until every watcher has seen the events 0 to n-1, and reports
// those that did not.
func (au *Audience) Verify(n int, wait time.Duration) error {
	if err := au.loop.Run(wait, func() bool { return au.Complete(n) }); err != nil {
		return err
	}
	behind, missing := 0, 0
	for _, w := range au.watchers {
		if w.count < n {
			behind++
			missing += n - w.count
		}
	}
	if behind > 0 {
		return fmt.Errorf("%d of %d watchers miss %d deliveries of %d after %v", behind, len(au.watchers), missing, n*len(au.watchers), wait)
	}
	return nil
}

// open asks for the events after the last that was seen.
func (w *watcher) open() error {
	w.answer.reset(false)
	w.partial = w.partial[:0]
	var err error
	if w.conn, err = w.audience.loop.dial(w.audience.spec.Addr, w.audience.spec.Secure, w); err != nil {
		return err
	}
	return w.conn.ask(w.audience.spec.Request(nil, w.revision))
}

func (w *watcher) receive(p []byte, now time.Duration) error {
	w.now = now
	done, err := w.conn.parse(&w.answer, p)
	switch {
	case err != nil:
		return err
	case w.answer.Status != 0 && w.answer.Status != 200:
		return fmt.Errorf("a watch is answered with status %d: %.300s", w.answer.Status, p)
	case w.err != nil:
		return w.err
	case done:
		w.conn.close()
		return w.closed(nil)
	}
	return nil
}

// closed resumes a stream that the server ended. A server may end the stream of
// a slow watcher; the next stream begins after the last event that was seen.
func (w *watcher) closed(error) error {
	w.audience.Cuts++
	return w.open()
}

// take splits the body into lines.
func (w *watcher) take(p []byte) {
	for w.err == nil {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.partial = append(w.partial, p...)
			return
		}
		line := p[:end]
		if len(w.partial) > 0 {
			w.partial = append(w.partial, line...)
			line = w.partial
		}
		w.err = w.line(line)
		w.partial, p = w.partial[:0], p[end+1:]
	}
}

// line checks one delivery.
func (w *watcher) line(line []byte) error {
	switch {
	case bytes.HasPrefix(line, []byte(errorMarker)):
		if bytes.Contains(line, []byte(`"code":410`)) {
			return fmt.Errorf("a watcher fell out of the history: %.300s", line)
		}
		return nil // the stream ends after it and is resumed
	case !bytes.HasPrefix(line, []byte(addedMarker)):
		return fmt.Errorf("unexpected watch event: %.300s", line)
	}
	i, err := number(line, nameMarker, nameDigits)
	if err != nil {
		return err
	}
	revision, err := number(line, revisionMarker, 20)
	if err != nil {
		return err
	}
	return w.deliver(int(i), revision, line)
}

func (w *watcher) deliver(i int, revision uint64, line []byte) error {
	if i >= maxEvents {
		return fmt.Errorf("event %d was never made", i)
	}
	if revision <= w.revision {
		return fmt.Errorf("event %d came with revision %d after revision %d", i, revision, w.revision)
	}
	w.revision = revision
	for i>>6 >= len(w.seen) {
		w.seen = append(w.seen, make([]uint64, 64)...)
	}
	if w.seen[i>>6]&(1<<(i&63)) != 0 {
		return fmt.Errorf("event %d came twice", i)
	}
	w.seen[i>>6] |= 1 << (i & 63)
	w.count++
	au := w.audience
	au.Deliveries++
	au.Bytes += len(line) + 1
	au.Latency.Add(w.now - au.spec.Began(i))
	if au.Deliveries%sampleEvery == 0 {
		return au.spec.Sample(line)
	}
	return nil
}

var errNoNumber = errors.New("watch event without")

// number is the decimal number after the first marker in line.
func number(line []byte, marker string, width int) (uint64, error) {
	at := bytes.Index(line, []byte(marker))
	if at < 0 {
		return 0, fmt.Errorf("%w %s: %.300s", errNoNumber, marker, line)
	}
	digits := line[at+len(marker):]
	n := 0
	for n < min(width, len(digits)) && '0' <= digits[n] && digits[n] <= '9' {
		n++
	}
	return strconv.ParseUint(string(digits[:n]), 10, 64)
}
