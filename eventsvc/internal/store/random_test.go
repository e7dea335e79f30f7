package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
)

// A random run does the same operations on an engine and on the model and
// compares every answer, with restarts in between.
type random struct {
	t      *testing.T
	engine engine
	store  store.Store
	model  *model
	rnd    *rand.Rand
	now    time.Time
}

func testRandom(t *testing.T, newEngine func(t testing.TB, now func() time.Time) engine) {
	steps := 500
	if *storetest.Long {
		steps = 50_000
	}
	r := &random{t: t, rnd: randtest.New(t), now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return r.now }
	r.engine, r.model = newEngine(t, clock), newModel(clock)
	r.store = r.engine.Start(t)
	for step := range steps {
		if r.step(); t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
	r.compareWatch()
	r.compareTimelines()
	r.engine.Stop(t)
}

func (r *random) key() store.Key {
	return key([]string{"a", "a-b", "b"}[r.rnd.IntN(3)], fmt.Sprintf("e%d", r.rnd.IntN(12)))
}

func (r *random) draft() store.Draft {
	d := draft(storetest.Noted(storetest.Text(r.rnd, 1+r.rnd.IntN(6))), []string{"R", "S", "T"}[r.rnd.IntN(3)], []string{"web", "db"}[r.rnd.IntN(2)])
	if r.rnd.IntN(10) > 0 { // else without an occurrence: observed once, when it is written
		n := r.rnd.Int64N(6)
		d.Attributes = d.Attributes.With(event.Occurrence{First: r.observedAt(), Time: r.observedAt(), Count: n, New: n, Counted: n})
		if from := r.observedAt().Truncate(time.Second); r.rnd.IntN(10) == 0 {
			d.Attributes = d.Attributes.WithReport(event.Report{Gap: event.Gap{From: from, To: from.Add(time.Minute), Rule: []string{"", "noise"}[r.rnd.IntN(2)], Count: n}})
		}
	}
	return d
}

// words returns a filter of a part of a text, or of several.
func (r *random) words() *event.Filter {
	f := &event.Filter{Kind: event.FilterKind(r.rnd.IntN(3))}
	n := 1
	if f.Kind != event.FilterNot {
		n += r.rnd.IntN(2)
	}
	for range n {
		word := &event.Filter{Kind: event.FilterWord, Word: storetest.PartOf(r.rnd, storetest.Text(r.rnd, 1+r.rnd.IntN(2))), Note: r.rnd.IntN(2) == 0}
		f.Parts = append(f.Parts, word)
	}
	return f
}

func (r *random) revision() uint64 {
	oldest := r.model.oldest
	return oldest + r.rnd.Uint64N(r.model.Revision()-oldest+2)
}

// remove returns what deletes an event, for somebody or not.
func (r *random) remove() store.Decide {
	d := store.Decision{Op: store.Delete}
	if r.rnd.IntN(2) == 0 {
		d.By = []byte("somebody")
	}
	return func(*store.Record) (store.Decision, error) { return d, nil }
}

func (r *random) step() {
	r.now = r.now.Add(time.Duration(r.rnd.IntN(1000)) * time.Millisecond)
	switch n := r.rnd.IntN(100); {
	case n < 35:
		r.create()
	case n < 60:
		r.update(put(r.draft()))
	case n < 75:
		r.update(r.remove())
	case n < 80:
		r.update(keep)
	case n < 85:
		r.get()
	case n < 95:
		r.list()
	case n < 96:
		r.compareWatch()
	case n < 98:
		r.compareTimelines()
	case n < 99:
		r.trim()
	case r.rnd.IntN(3) == 0:
		r.bump()
	default:
		r.restart()
	}
}

func (r *random) create() {
	k, d := r.key(), r.draft()
	want, wantErr := store.Create(r.t.Context(), r.model, k, d)
	got, err := store.Create(r.t.Context(), r.store, k, d)
	r.compare("create "+k.String(), want, got, wantErr, err)
}

func (r *random) update(decide store.Decide) {
	k := r.key()
	want, wantErr := r.model.Update(r.t.Context(), k, store.Any, decide)
	got, err := r.store.Update(r.t.Context(), k, store.Expect(r.rnd.IntN(2)), decide) // right or wrong
	r.compare("update "+k.String(), want, got, wantErr, err)
}

func (r *random) get() {
	k := r.key()
	want, wantErr := store.Read(r.t.Context(), r.model, k)
	got, err := store.Read(r.t.Context(), r.store, k)
	r.compare("get "+k.String(), want, got, wantErr, err)
}

func (r *random) list() {
	q := store.Query{Limit: r.rnd.IntN(5), Revision: r.revision(), Count: r.rnd.IntN(2) == 0}
	if r.rnd.IntN(3) == 0 {
		q.Namespace = r.key().Namespace
	}
	if r.rnd.IntN(3) == 0 {
		q.Revision = 0
	}
	if r.rnd.IntN(4) == 0 {
		q.Selector = selector(r.t, "S", "app=web")
	}
	if r.rnd.IntN(4) == 0 {
		q.After = r.key()
	}
	for {
		wantRecords, want, wantErr := store.Records(r.t.Context(), r.model, q)
		records, got, err := store.Records(r.t.Context(), r.store, q)
		if err == nil {
			// Where nothing is left, how far an engine looked is its own affair.
			if !got.More && !want.More {
				want.Last = got.Last
			}
			if q.Selector != nil && want.More && !got.More { // an engine may know that what is left does not match
				rest := list(r.t, r.model, store.Query{Namespace: q.Namespace, Selector: q.Selector, Revision: want.Revision, After: want.Last})
				if len(rest) > 0 {
					r.t.Errorf("list %+v ends %d events early", q, len(rest))
				}
			}
		}
		if q.Selector == nil || err != nil {
			r.compare(fmt.Sprintf("list %+v", q), want, got, wantErr, err)
		}
		if diff := diffRecords(wantRecords, records); err == nil && diff != "" {
			r.t.Errorf("list %+v: %s", q, diff)
		}
		if err != nil || !got.More || r.t.Failed() {
			return
		}
		q.Revision, q.After = got.Revision, got.Last
		if q.Behind = 0; r.rnd.IntN(4) > 0 {
			q.Behind = got.Remaining
		}
	}
}

// compareWatch reads a watch from a random revision up to now.
func (r *random) compareWatch() {
	q := store.WatchQuery{After: min(r.revision(), r.model.Revision())}
	if r.rnd.IntN(2) == 0 {
		q.Selector = selector(r.t, "", "app=web")
	}
	if r.rnd.IntN(3) == 0 {
		q.Namespace = "a"
	}
	want := r.model.Deliveries(q, q.After, r.model.Revision())
	w, err := r.store.Watch(r.t.Context(), q)
	if err != nil {
		r.t.Errorf("watch %+v: %v", q, err)
		return
	}
	defer w.Close()
	if diff := cmp.Diff(show(want), show(take(r.t, w, len(want)))); diff != "" {
		r.t.Errorf("watch %+v: %s", q, diff)
	}
}

// trim has the engine give up history, and checks the border (R7).
func (r *random) trim() {
	e, ok := r.engine.(trimmer)
	if !ok {
		return
	}
	oldest := e.Trim(r.t)
	r.model.Trim(oldest)
	for _, revision := range []uint64{oldest - 1, oldest} {
		if revision == 0 {
			continue
		}
		_, _, err := store.Records(r.t.Context(), r.store, store.Query{Revision: revision})
		expired := new(store.ExpiredError)
		if got := errors.As(err, &expired); got != (revision < oldest) || got && expired.Oldest != oldest {
			r.t.Errorf("list at %d, the oldest is %d: %v", revision, oldest, err)
		}
		w, err := r.store.Watch(r.t.Context(), store.WatchQuery{After: revision})
		if got := errors.As(err, &expired); got != (revision < oldest) {
			r.t.Errorf("watch after %d, the oldest is %d: %v", revision, oldest, err)
		}
		if err == nil {
			w.Close()
		}
	}
}

// bump has the engine go on behind a gap (R4).
func (r *random) bump() {
	e, ok := r.engine.(bumper)
	if !ok {
		return
	}
	before := r.model.Revision()
	after := e.Bump(r.t)
	if after <= before || r.store.Revision() != after {
		r.t.Errorf("bumped from %d to %d, and is at %d", before, after, r.store.Revision())
	}
	r.model.Bump(after)
	for _, revision := range []uint64{before, after - 1} {
		expired := new(store.ExpiredError)
		if _, err := r.store.Watch(r.t.Context(), store.WatchQuery{After: revision}); !errors.As(err, &expired) || expired.Oldest != after {
			r.t.Errorf("watch after %d, bumped to %d: %v", revision, after, err)
		}
	}
}

func (r *random) restart() {
	r.engine.Stop(r.t)
	r.store = r.engine.Start(r.t)
	r.compareTimelines()
	if r.store.Revision() != r.model.Revision() {
		r.t.Errorf("revision %d after a restart, want %d", r.store.Revision(), r.model.Revision())
	}
}

// compare checks one answer against the model's.
func (r *random) compare(what string, want, got any, wantErr, gotErr error) {
	r.t.Helper()
	for _, sentinel := range []error{store.ErrExists, store.ErrNotFound} {
		if errors.Is(wantErr, sentinel) && errors.Is(gotErr, sentinel) {
			return
		}
	}
	var wantFuture, gotFuture *store.FutureError
	if errors.As(wantErr, &wantFuture) && errors.As(gotErr, &gotFuture) && *wantFuture == *gotFuture {
		return
	}
	if wantErr != nil || gotErr != nil {
		r.t.Errorf("%s: error %v, want %v", what, gotErr, wantErr)
		return
	}
	if diff := diffRecords(want, got); diff != "" {
		r.t.Errorf("%s: %s", what, diff)
	}
}
