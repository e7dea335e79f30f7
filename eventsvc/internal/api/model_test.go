package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"tidings.example/shared/waittest"
)

// churn makes random writes by several writers until the returned function is
// called.
func churn(w *world) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	for writer := range 3 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(writer)))
			for {
				select {
				case <-done:
					return
				default:
				}
				name := fmt.Sprintf("e%02d", random.IntN(40))
				switch random.IntN(3) {
				case 0:
					w.do("POST", eventsPath, newEvent(name, `"metadata":{"name":"`+name+`","labels":{"n":"`+strconv.Itoa(random.IntN(3))+`"}}`))
				case 1:
					w.do("PATCH", eventsPath+"/"+name, `{"metadata":{"labels":{"n":"`+strconv.Itoa(random.IntN(3))+`"}}}`, "Content-Type", mergePatch)
				default:
					w.do("DELETE", eventsPath+"/"+name, "")
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(done)
		waittest.Join(w.t, &wg)
	})
}

// label is the label n of an object, "" if there is none.
func label(object any) string {
	n, _ := field(object, "metadata.labels.n").(string)
	return n
}

// TestPagesUnderWrites: the pages of a list, put together, are the list at
// their version, whatever is written meanwhile. A selector finds the same
// events as a simple reference implementation.
func TestPagesUnderWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := churn(w)
	defer stop()
	for round := range 25 {
		selector, keep := "", func(any) bool { return true }
		switch round % 4 {
		case 1:
			selector, keep = "&labelSelector=n%3D1", func(o any) bool { return label(o) == "1" }
		case 2:
			selector, keep = "&labelSelector=n+notin+(0,2)", func(o any) bool { return label(o) != "0" && label(o) != "2" }
		case 3:
			selector = "&fieldSelector=metadata.name!%3De07,reason%3DBecause"
			keep = func(o any) bool { return field(o, "metadata.name") != "e07" }
		}
		limit := "limit=" + strconv.Itoa(1+round%7)
		page := w.do("GET", eventsPath+"?"+limit+selector, "").must(200)
		rv := page.at("metadata.resourceVersion").(string)
		items := page.at("items").([]any)
		for page.at("metadata.continue") != nil {
			page = w.do("GET", eventsPath+"?"+limit+selector+"&continue="+page.at("metadata.continue").(string), "").must(200)
			equal(t, page.at("metadata.resourceVersion"), any(rv))
			items = append(items, page.at("items").([]any)...)
		}
		whole := w.do("GET", eventsPath+"?resourceVersionMatch=Exact&resourceVersion="+rv, "").must(200).at("items").([]any)
		want := slices.DeleteFunc(whole, func(o any) bool { return !keep(o) })
		equal(t, items, append([]any{}, want...))
	}
}

// TestWatchRebuildsTheList: the list at any version, with the changes of a
// watch from there applied to it, is the list at the end; also for a selector.
func TestWatchRebuildsTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := churn(w)
	defer stop()
	type started struct {
		state map[string]string
		watch *stream
		query string
	}
	srv := w.serve()
	var all []started
	for round := range 10 {
		query := []string{"", "&labelSelector=n%3D1"}[round%2]
		list := w.do("GET", eventsPath+"?"+query, "").must(200)
		s := started{state: map[string]string{}, query: query}
		for _, item := range list.at("items").([]any) {
			keep(t, s.state, item)
		}
		s.watch = w.watch(srv, eventsPath+"?watch=1&resourceVersion="+list.at("metadata.resourceVersion").(string)+query)
		all = append(all, s)
	}
	stop()
	last := w.do("POST", eventsPath, newEvent("last", `"metadata":{"name":"last","labels":{"n":"1"}}`)).must(201)
	for _, s := range all {
		for s.state["last"] == "" {
			kind, object := s.watch.next()
			name := field(object, "metadata.name").(string)
			_, there := s.state[name]
			if there == (kind == "ADDED") {
				t.Fatalf("%s of %s, which is there: %v", kind, name, there)
			}
			if delete(s.state, name); kind != "DELETED" {
				keep(t, s.state, object)
			}
		}
		want := map[string]string{}
		end := w.do("GET", eventsPath+"?resourceVersion="+last.at("metadata.resourceVersion").(string)+s.query, "").must(200)
		for _, item := range end.at("items").([]any) {
			keep(t, want, item)
		}
		equal(t, maps.Clone(s.state), want)
	}
}

// keep notes an object as it is, without its kind.
func keep(t *testing.T, state map[string]string, object any) {
	t.Helper()
	o := maps.Clone(object.(map[string]any))
	delete(o, "kind")
	delete(o, "apiVersion")
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	state[field(o, "metadata.name").(string)] = string(b)
}
