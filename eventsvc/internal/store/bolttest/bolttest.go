// Package bolttest has what the tests of the bbolt engine and of the packages that it puts together share.
package bolttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/eventsvc/internal/store/usage"
)

// Check fails the test if the store's own check finds anything.
func Check(t testing.TB, db *bolt.DB) {
	t.Helper()
	report, err := db.Check(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Errorf("check: %v", err)
		return
	}
	for _, p := range report.Problems {
		t.Errorf("check: %s", p)
	}
}

// SyncBuffer collects what several goroutines write.
type SyncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements [io.Writer].
func (s *SyncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String returns what was written.
func (s *SyncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// OpenDB opens a store, with -compress one that compresses.
func OpenDB(o bolt.Options) (*bolt.DB, error) {
	if *storetest.Compress && o.CompressAfter == 0 {
		o.CompressAfter = time.Nanosecond
	}
	db, err := bolt.Open(o)
	if err == nil {
		opened.Store(db, o)
	}
	return db, err
}

// opened has the [bolt.Options] of each [*bolt.DB].
var opened sync.Map

// Open opens a store, or fails the test.
func Open(t testing.TB, o bolt.Options) *bolt.DB {
	t.Helper()
	db, err := OpenDB(o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Close closes a store, of which nothing may be damaged, and opens it again: it must be as it was.
func Close(t testing.TB, db *bolt.DB) {
	t.Helper()
	Check(t, db)
	before, all := db.Stats(), few(t, db)
	failed := errors.Is(db.Ready(context.WithoutCancel(t.Context())), store.ErrUnwritable)
	if err := db.Close(); err != nil {
		t.Error(err)
		return
	}
	o, known := opened.LoadAndDelete(db)
	if !known || failed { // opened otherwise, or closed twice; a write that has failed may be there nevertheless
		return
	}
	options := o.(bolt.Options)
	options.Registry = nil
	again, err := bolt.Open(options)
	if errors.Is(err, store.ErrInUse) {
		return // the test has opened it already
	}
	if err != nil {
		t.Errorf("it cannot be opened again: %v", err)
		return
	}
	after := again.Stats()
	if again.Revision() != db.Revision() || after.Events != before.Events || after.LiveBytes != before.LiveBytes {
		t.Errorf("opened again it has revision %d and %+v, had revision %d and %+v", again.Revision(), after, db.Revision(), before)
	}
	if diff := cmp.Diff(all, few(t, again)); diff != "" {
		t.Errorf("opened again: (-before +after)\n%s", diff)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// few prints the events of a store that has no more than a few.
func few(t testing.TB, db *bolt.DB) []string {
	t.Helper()
	if db.Stats().Events > 1000 {
		return nil
	}
	return events(t, db)
}

// Key names one of the events of [Create].
func Key(i int) store.Key { return store.Key{Namespace: "ns", Name: fmt.Sprintf("e%04d", i)} }

// Fill stores n events, hundreds in a commit, in their order.
func Fill(t testing.TB, db *bolt.DB, n int, made func(i int) (store.Key, store.Draft)) {
	t.Helper()
	for from := 0; from < n; from += 500 {
		keys, drafts := make([]store.Key, min(500, n-from)), make([]store.Draft, min(500, n-from))
		for i := range keys {
			keys[i], drafts[i] = made(from + i)
		}
		outcomes := db.UpdateMany(t.Context(), keys, func(int) store.Expect { return store.Absent }, func(i int, _ *store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: drafts[i]}, nil
		})
		for _, o := range outcomes {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
		}
	}
}

// Create stores n events, each in a commit of its own as long as they are few.
func Create(t testing.TB, db *bolt.DB, n int, value string) {
	t.Helper()
	d := store.Draft{Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, nil), Value: []byte(value)}
	if n > 100 {
		Fill(t, db, n, func(i int) (store.Key, store.Draft) { return Key(i), d })
		return
	}
	for i := range n {
		if _, err := store.Create(t.Context(), db, Key(i), d); err != nil {
			t.Error(err)
		}
	}
}

// Dump prints all events, and every change that is held.
func Dump(t testing.TB, db *bolt.DB) []string {
	t.Helper()
	return append(events(t, db), changes(t, db)...)
}

// events prints all events. It may be called when the test ends.
func events(t testing.TB, db *bolt.DB) (out []string) {
	t.Helper()
	q := store.Query{Revision: db.Revision()}
	for {
		records, page, err := store.Records(context.WithoutCancel(t.Context()), db, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			out = append(out, fmt.Sprintf("%s %d %s %x %s", r.Key, r.Revision, r.Time.UTC().Format(time.RFC3339Nano), r.Attributes, r.Value))
		}
		if !page.More {
			return out
		}
		q.After = page.Last
	}
}

// changes prints every change that is held.
func changes(t testing.TB, db *bolt.DB) (out []string) {
	t.Helper()
	at := db.Stats().Oldest
	w, err := db.Watch(t.Context(), store.WatchQuery{After: at})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for at < db.Revision() {
		b, err := storetest.Next(t, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			out = append(out, fmt.Sprintf("%d: %d %s %d %s", d.Revision, d.Type, d.Object.Key, d.Object.Revision, d.Object.Value))
		}
		at = b.Revision
	}
	return out
}

// Change writes an event, whatever it is.
func Change(*store.Record) (store.Decision, error) {
	return store.Decision{Op: store.Put, Draft: store.Draft{Value: []byte("changed")}}, nil
}

// Remove deletes an event.
func Remove(*store.Record) (store.Decision, error) { return store.Decision{Op: store.Delete}, nil }

// Clock is a wall clock that the test moves.
type Clock struct{ unix atomic.Int64 }

// NewClock returns a clock that stands still.
func NewClock() *Clock {
	c := new(Clock)
	c.unix.Store(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixNano())
	return c
}

// Now returns the time that it shows.
func (c *Clock) Now() time.Time { return time.Unix(0, c.unix.Load()) }

// Add moves it.
func (c *Clock) Add(d time.Duration) { c.unix.Add(int64(d)) }

// Maintain does one round of maintenance.
func Maintain(t testing.TB, db *bolt.DB) {
	t.Helper()
	if err := db.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// DirBytes is what the files of a directory take, without the spare file, which is there or not as the disk has room.
func DirBytes(t testing.TB, dir string) (n int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == usage.SpareName {
			continue
		}
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// Gauge reads a gauge.
func Gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}
