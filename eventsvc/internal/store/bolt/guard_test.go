package bolt

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// TestPanicOfVisitorIsPassedOn: a bug in what a reader does with an event is not
// reported as damage of the files, and leaves no transaction or lock behind.
func TestPanicOfVisitorIsPassedOn(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	db := openQuiet(t, func(o *Options) { o.Registry = registry })
	key := func(i int) store.Key { return store.Key{Namespace: "default", Name: fmt.Sprint("e", i)} }
	for i := range 20 {
		d := store.Draft{Value: []byte("{}"), Attributes: event.NewAttributes([event.NumFields]string{event.Reason: fmt.Sprint("R", i)}, nil)}
		if _, err := store.Create(t.Context(), db, key(i), d); err != nil {
			t.Fatal(err)
		}
	}
	bug := errors.New("a bug in the codec")
	visit := func(*store.View) bool { panic(bug) }
	list := func(q store.Query) func() error {
		return func() error {
			_, err := db.List(t.Context(), q, visit)
			return err
		}
	}
	rare := &event.Selector{Fields: []event.FieldRequirement{{Field: event.Reason, Value: "R7"}}}
	for name, read := range map[string]func() error{
		"get": func() error {
			return db.Get(t.Context(), key(3), func(v *store.View) error { visit(v); return nil })
		},
		"list":     list(store.Query{}),
		"page":     list(store.Query{Limit: 5, Count: true}),
		"selected": list(store.Query{Selector: rare}),
		"nil": func() error {
			return db.Get(t.Context(), key(3), func(*store.View) error {
				var none *store.View
				none.Revision++
				return nil
			})
		},
	} {
		var err error
		panicked := func() (value any) {
			defer func() { value = recover() }()
			err = read()
			return nil
		}()
		if panicked == nil {
			t.Errorf("%s: the panic was taken for %v", name, err)
		} else if name != "nil" && panicked != any(bug) {
			t.Errorf("%s: the panic has become %v", name, panicked)
		}
	}
	if n := fileStats(db).OpenTxN; n != 0 {
		t.Errorf("%d transactions are left open", n)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := f.GetMetric()[0].GetCounter().GetValue(); f.GetName() == "store_damaged_reads_total" && n != 0 {
			t.Errorf("%v reads are counted as damaged", n)
		}
	}
	if err := db.Compact(t.Context(), false, nil); err != nil { // needs every lock
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
