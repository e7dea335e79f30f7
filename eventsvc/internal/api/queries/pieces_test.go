package queries_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// crowded is a timeline in which each of 60 groups is observed in each second.
type crowded struct{ store.Timeline }

func (crowded) Count(_ context.Context, r store.Count, visit func(store.Occurred)) error {
	for i := range 60 {
		id := r.Group(event.Dimensions{Reason: fmt.Sprintf("Reason%d", i), Namespace: "shop", Reporter: `"<x>"`, Node: fmt.Sprint("node", i%3)}, event.Regarding{})
		if id < 0 {
			continue
		}
		for second := r.From.Unix(); second < r.To.Unix(); second++ {
			visit(store.Occurred{Group: id, Second: second, Count: int64(1 + i%2)})
		}
	}
	return nil
}

// watched is a client that tells the largest piece it was sent, and leaves after so many, at once if they are less than
// 0; 0: it stays.
type watched struct {
	*httptest.ResponseRecorder
	largest, writes, leaves int
}

func (w *watched) Write(b []byte) (int, error) {
	if w.writes++; w.leaves != 0 && w.writes > w.leaves {
		return 0, errors.New("the client has left")
	}
	w.largest = max(w.largest, len(b))
	return w.ResponseRecorder.Write(b)
}

// TestLongAnswersComeInPieces: an answer of megabytes is never in memory as a whole, in JSON and CSV, and ends with its
// client.
func TestLongAnswersComeInPieces(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return apitest.StoryEnd }
	w := apitest.Open(t, bolt.Options{Now: now}, func(c *api.Config) { c.Now = now })
	w.Tell()
	w.Config.Timeline = crowded{w.Config.Timeline}
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	ask := func(path, accept string, leaves int) (client *watched) {
		req := httptest.NewRequestWithContext(t.Context(), "GET", path, strings.NewReader(""))
		req.Header.Set("Authorization", "Bearer good")
		req.Header.Set("Accept", accept)
		client = &watched{ResponseRecorder: httptest.NewRecorder(), leaves: leaves}
		defer func() {
			aborted := recover()
			cut, _ := aborted.(error) // http.ErrAbortHandler is how a connection is cut
			if aborted != nil && (leaves == 0 || !errors.Is(cut, http.ErrAbortHandler)) {
				panic(aborted)
			}
		}()
		w.Handler().ServeHTTP(client, req)
		return client
	}
	path := apitest.QueryPath("histogram", "by", "reason,node,reporter", "step", "1s", "from", "-30m", "to", apitest.StoryEnd.Format(time.RFC3339))
	for _, accept := range []string{"application/json", "text/csv", "application/vnd.tidings.table+json"} {
		c := ask(path, accept, 0)
		if c.Code != 200 || c.Body.Len() < 1<<20 || c.largest > httpio.Piece+64<<10 {
			t.Errorf("%s: %d, %d bytes in pieces of %d", accept, c.Code, c.Body.Len(), c.largest)
		}
		if c := ask(path, accept, 2); c.writes != 3 {
			t.Errorf("%s: %d pieces for a client that leaves after 2", accept, c.writes)
		}
	}
	var answer struct {
		Total   int64
		Buckets []struct {
			Count, Other int64
			Counts       map[string]map[string]map[string]int64
		}
	}
	if err := json.Unmarshal(ask(path, "application/json", 0).Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Total != 1800*90 || len(answer.Buckets) != 1800 {
		t.Errorf("%d in %d buckets", answer.Total, len(answer.Buckets))
	}
	for _, b := range answer.Buckets {
		if b.Count != 90 || b.Other != 10 || len(b.Counts) != 50 || b.Counts["Reason1"]["node1"][`"<x>"`] != 2 {
			t.Fatalf("%+v", b)
		}
	}
}
