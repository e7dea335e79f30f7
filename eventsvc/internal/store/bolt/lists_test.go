package bolt_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// The shape of the events of BenchmarkLists: namespaces of equal size, one event in ten a
// warning, and so many reasons.
const (
	listsNamespaces = 200
	listsReasons    = 52
	listsPage       = 500
)

// BenchmarkLists reads a store of TIDINGS_BENCH_EVENTS events, 20,000 unless that is set.
// With TIDINGS_BENCH_DIR it keeps them in that directory, and fills it only up to their
// number. With TIDINGS_BENCH_COLD it opens the store again before each list, after the
// kernel has dropped its pages.
func BenchmarkLists(b *testing.B) {
	n := 20_000
	if text := os.Getenv("TIDINGS_BENCH_EVENTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	o := bolt.Options{Dir: os.Getenv("TIDINGS_BENCH_DIR"), MaxBytes: -1}
	if o.Dir == "" {
		o.Dir = b.TempDir()
	}
	l := &listsBench{options: o, cold: os.Getenv("TIDINGS_BENCH_COLD") != ""}
	l.open(b)
	defer l.close(b)
	l.fill(b, n)
	warnings := field(event.Type, "Warning")
	for _, list := range []struct {
		name  string
		query store.Query
	}{
		{"page/first", store.Query{Limit: listsPage, Count: true}},
		{"page/namespace", store.Query{Limit: listsPage, Count: true, Namespace: listsKey(n / 2).Namespace}},
		{"list/namespace-type", store.Query{Namespace: listsKey(n / 2).Namespace, Selector: warnings}},
		{"list/namespace-reason", store.Query{Namespace: listsKey(n / 2).Namespace, Selector: field(event.Reason, "R37")}},
		{"page/type", store.Query{Limit: listsPage, Selector: warnings}},
		{"page/reason", store.Query{Limit: listsPage, Selector: field(event.Reason, "R37")}},
		{"list/reason", store.Query{Selector: field(event.Reason, "R37")}},
		{"list/label", store.Query{Selector: &event.Selector{Labels: requirements(b, "app=a77")}}},
		{"list/object", store.Query{Selector: field(event.RegardingUID, "uid-77")}},
		{"list/none", store.Query{Selector: field(event.Reason, "None")}},
	} {
		b.Run(list.name, func(b *testing.B) {
			for b.Loop() {
				l.begin(b)
				l.list(b, list.query)
			}
		})
	}
	b.Run("list/all", func(b *testing.B) {
		events := 0
		for b.Loop() {
			l.begin(b)
			for q := (store.Query{Limit: listsPage, Count: true}); ; {
				page := l.page(b, q, &events)
				if !page.More {
					break
				}
				q.Revision, q.After, q.Behind = page.Revision, page.Last, page.Remaining
			}
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(events)*1e6, "s/million")
	})
}

// listsBench is the store of BenchmarkLists.
type listsBench struct {
	options bolt.Options
	cold    bool
	db      *bolt.DB
	buf     []byte
}

func (l *listsBench) open(b *testing.B) {
	b.Helper()
	var err error
	if l.db, err = bolt.Open(l.options); err != nil {
		b.Fatal(err)
	}
}

func (l *listsBench) close(b *testing.B) {
	b.Helper()
	if err := l.db.Close(); err != nil {
		b.Fatal(err)
	}
}

// begin makes the store cold, if it is to be.
func (l *listsBench) begin(b *testing.B) {
	b.Helper()
	if !l.cold {
		return
	}
	b.StopTimer()
	defer b.StartTimer()
	l.close(b)
	dropPages(b, l.options.Dir)
	l.open(b)
}

// fill creates the events that are missing.
func (l *listsBench) fill(b *testing.B, n int) {
	b.Helper()
	var next atomic.Int64
	next.Store(l.db.Stats().Events)
	value := make([]byte, 1400)
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if _, err := store.Create(b.Context(), l.db, listsKey(i), listsDraft(i, value)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}

// listsKey names an event. The order of the keys has nothing to do with the order of the events.
func listsKey(i int) store.Key {
	return store.Key{Namespace: fmt.Sprintf("ns-%03d", i%listsNamespaces), Name: fmt.Sprintf("web-%08x.%x", uint32(i)*2654435761, i)}
}

func listsDraft(i int, value []byte) store.Draft {
	scattered := int(uint32(i/listsNamespaces*40503+i) * 2654435761 >> 8)
	kind := "Normal"
	if scattered%10 == 0 {
		kind = "Warning"
	}
	object := fmt.Sprintf("web-%d", i/20)
	return store.Draft{Value: value, Attributes: event.NewAttributes([event.NumFields]string{
		"Pod", listsKey(i).Namespace, object, fmt.Sprint("uid-", i/20), "v1", strconv.Itoa(i), "spec.containers{web}",
		fmt.Sprint("R", scattered/10%listsReasons), kind, "kubelet", "kubelet",
	}, map[string]string{"app": fmt.Sprint("a", scattered%500)})}
}

// list reads all pages of a list, or the first if it has a limit, as the API does.
func (l *listsBench) list(b *testing.B, q store.Query) {
	b.Helper()
	for seen := 0; ; {
		page := l.page(b, q, &seen)
		if !page.More || q.Limit > 0 && seen >= q.Limit {
			return
		}
		q.Revision, q.After = page.Revision, page.Last
	}
}

// page reads as much of a list as the API does at a time.
func (l *listsBench) page(b *testing.B, q store.Query, seen *int) store.Page {
	b.Helper()
	l.buf = l.buf[:0]
	page, err := l.db.List(b.Context(), q, func(v *store.View) bool {
		*seen++
		l.buf = append(l.buf, v.Value...)
		return q.Limit > 0 || len(l.buf) < 512<<10
	})
	if err != nil {
		b.Fatal(err)
	}
	return page
}
