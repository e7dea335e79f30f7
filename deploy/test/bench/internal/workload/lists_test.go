package workload

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

func TestCountEvents(t *testing.T) {
	t.Parallel()
	list := `{"items":[{"metadata":{"name":"` + target.EventName(0) + `"}},{"metadata":{"name":"` + target.EventName(1) + `"},"regarding":{"name":"x"}}]}`
	if got := countEvents([]byte(list)); got != 2 {
		t.Errorf("JSON: %d events, want 2", got)
	}
	proto := "k8s\x00...\n\x10" + target.EventName(0) + "...\n\x10" + target.EventName(1) + target.EventName(2)
	if got := countEvents([]byte(proto)); got != 2 {
		t.Errorf("protobuf: %d events, want 2", got)
	}
}

// listOf is a list of n events in JSON, with a continue token unless it is the last page.
func listOf(n int, next string) []byte {
	metadata := `{"resourceVersion":"7"}`
	if next != "" {
		metadata = `{"resourceVersion":"7","continue":"` + next + `"}`
	}
	items := make([]string, n)
	for i := range items {
		items[i] = `{"metadata":{"name":"` + target.EventName(i) + `"}}`
	}
	return []byte(`{"kind":"EventList","metadata":` + metadata + `,"items":[` + strings.Join(items, ",") + `]}`)
}

// TestCheckList: every list has about the size of the first, and one that was kept has all events.
func TestCheckList(t *testing.T) {
	t.Parallel()
	plain := listOf(3, "")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		i       int
		answer  load.Answer
		n       int
		zipped  bool
		problem string // part of the error; empty: none
	}{
		{"complete", 0, load.Answer{Status: http.StatusOK, Size: 1000, Body: plain}, 3, false, ""},
		{"compressed", keptLists, load.Answer{Status: http.StatusOK, Size: 1000, Body: zipped.Bytes()}, 3, true, ""},
		{"not kept", 1, load.Answer{Status: http.StatusOK, Size: 1010}, 3, false, ""},
		{"refused", 1, load.Answer{Status: http.StatusTooManyRequests, Size: 1000}, 3, false, "429"},
		{"shorter", 1, load.Answer{Status: http.StatusOK, Size: 989}, 3, false, "989 bytes after one of 1000"},
		{"longer", 1, load.Answer{Status: http.StatusOK, Size: 1011}, 3, false, "1011 bytes after one of 1000"},
		{"incomplete", 0, load.Answer{Status: http.StatusOK, Size: 1000, Body: plain}, 4, false, "3 events in a list of 4"},
		{"not compressed", 0, load.Answer{Status: http.StatusOK, Size: 1000, Body: plain}, 3, true, "not compressed"},
	} {
		err := checkList(c.i, &c.answer, 1000, c.n, c.zipped)
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", c.name, err, c.problem)
		}
	}
}

// TestPager: a pager asks with the token of the page before, begins again behind the last one, and reports that events
// are missing.
func TestPager(t *testing.T) {
	t.Parallel()
	p := NewPager(nil, target.NewEvents("127.0.0.1:1", "TOKEN", ""), 5)
	for i, page := range []struct {
		query   string // of the request
		events  int
		next    string
		lists   int64 // whole ones, behind this page
		problem string
	}{
		{"?limit=500 ", 3, "a+b", 0, ""},
		{"?limit=500&continue=a%2Bb ", 2, "", 1, ""},
		{"?limit=500 ", 3, "c", 1, ""},
		{"?limit=500&continue=c ", 1, "", 2, "4 events in the pages of a list of 5"},
	} {
		if request := string(p.ask(nil, i)); !strings.Contains(request, page.query) {
			t.Errorf("page %d is asked for by %q, want %s", i, request, page.query)
		}
		err := p.check(i, &load.Answer{Status: http.StatusOK, Body: listOf(page.events, page.next)})
		if (err == nil) != (page.problem == "") || err != nil && !strings.Contains(err.Error(), page.problem) {
			t.Errorf("page %d: %v, want %q", i, err, page.problem)
		}
		if p.Times.Count() != page.lists {
			t.Errorf("%d lists are complete behind page %d, want %d", p.Times.Count(), i, page.lists)
		}
	}
	if err := p.check(4, &load.Answer{Status: http.StatusGone}); err == nil {
		t.Error("an answer of status 410 passes as a page")
	}
}
