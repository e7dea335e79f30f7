package stream_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// churn makes random writes by several writers until the returned function is
// called.
func churn(w *apitest.World) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	seed := randtest.Seed(w.T)
	for writer := range 3 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(writer)))
			for {
				select {
				case <-done:
					return
				default:
				}
				name := fmt.Sprintf("e%02d", random.IntN(40))
				switch random.IntN(3) {
				case 0:
					w.Do("POST", apitest.EventsPath, apitest.NewEvent(name, `"metadata":{"name":"`+name+`","labels":{"n":"`+strconv.Itoa(random.IntN(3))+`"}}`))
				case 1:
					w.Do("PATCH", apitest.EventsPath+"/"+name, `{"metadata":{"labels":{"n":"`+strconv.Itoa(random.IntN(3))+`"}}}`, "Content-Type", apitest.MergePatch)
				default:
					w.Do("DELETE", apitest.EventsPath+"/"+name, "")
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(done)
		waittest.Join(w.T, &wg)
	})
}

// label is the label n of an object, "" if there is none.
func label(object any) string {
	n, _ := apitest.Field(object, "metadata.labels.n").(string)
	return n
}

// TestPagesUnderWrites: the pages of a list, put together, are the list at
// their version, whatever is written meanwhile. A selector finds the same
// events as a simple reference implementation.
func TestPagesUnderWrites(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
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
			keep = func(o any) bool { return apitest.Field(o, "metadata.name") != "e07" }
		}
		limit := "limit=" + strconv.Itoa(1+round%7)
		page := w.Do("GET", apitest.EventsPath+"?"+limit+selector, "").Must(200)
		rv := page.At("metadata.resourceVersion").(string)
		items := page.At("items").([]any)
		for page.At("metadata.continue") != nil {
			page = w.Do("GET", apitest.EventsPath+"?"+limit+selector+"&continue="+page.At("metadata.continue").(string), "").Must(200)
			apitest.Equal(t, page.At("metadata.resourceVersion"), any(rv))
			items = append(items, page.At("items").([]any)...)
		}
		whole := w.Do("GET", apitest.EventsPath+"?resourceVersionMatch=Exact&resourceVersion="+rv, "").Must(200).At("items").([]any)
		want := slices.DeleteFunc(whole, func(o any) bool { return !keep(o) })
		apitest.Equal(t, items, append([]any{}, want...))
	}
}

// TestWatchRebuildsTheList: the list at any version, with the changes of a
// watch from there applied to it, is the list at the end; also for a selector.
func TestWatchRebuildsTheList(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	stop := churn(w)
	defer stop()
	type started struct {
		state map[string]string
		watch *apitest.Stream
		query string
	}
	srv := w.Serve()
	var all []started
	for round := range 10 {
		query := []string{"", "&labelSelector=n%3D1"}[round%2]
		list := w.Do("GET", apitest.EventsPath+"?"+query, "").Must(200)
		s := started{state: map[string]string{}, query: query}
		for _, item := range list.At("items").([]any) {
			keep(t, s.state, item)
		}
		s.watch = w.Watch(srv, apitest.EventsPath+"?watch=1&resourceVersion="+list.At("metadata.resourceVersion").(string)+query)
		all = append(all, s)
	}
	stop()
	last := w.Do("POST", apitest.EventsPath, apitest.NewEvent("last", `"metadata":{"name":"last","labels":{"n":"1"}}`)).Must(201)
	for _, s := range all {
		for s.state["last"] == "" {
			kind, object := s.watch.Next()
			name := apitest.Field(object, "metadata.name").(string)
			_, there := s.state[name]
			if there == (kind == "ADDED") {
				t.Fatalf("%s of %s, which is there: %v", kind, name, there)
			}
			if delete(s.state, name); kind != "DELETED" {
				keep(t, s.state, object)
			}
		}
		want := map[string]string{}
		end := w.Do("GET", apitest.EventsPath+"?resourceVersion="+last.At("metadata.resourceVersion").(string)+s.query, "").Must(200)
		for _, item := range end.At("items").([]any) {
			keep(t, want, item)
		}
		apitest.Equal(t, maps.Clone(s.state), want)
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
	state[apitest.Field(o, "metadata.name").(string)] = string(b)
}
