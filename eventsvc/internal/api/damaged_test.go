package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/httpserver"
)

// TestDamagedEventIsNeverListed (R13): a list that finds damage is answered
// with an error in every format, or cut off if a part was sent already. Other
// requests go on.
func TestDamagedEventIsNeverListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 300<<10)
	for i := range 10 {
		note := fmt.Sprintf(`"note":"needle-%d %s"`, i, long[:1000])
		w.do("POST", eventsPath, newEvent(fmt.Sprintf("a%d", i), note)).must(201)
		w.do("POST", corePath, fmt.Sprintf(`{"metadata":{"name":"b%d"},"involvedObject":{"namespace":"default"},"message":"needle-b%d %s"}`, i, i, long)).must(201)
	}
	spoil := func(texts ...string) {
		t.Helper()
		w.stop()
		path := filepath.Join(w.store.Dir, "log-00000000000000000002.db")
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			file = bytes.ReplaceAll(file, []byte(text+" "), []byte(text+"!"))
		}
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		w.start()
	}
	proto, table := "application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io"
	spoil("needle-b8")
	for _, accept := range []string{"application/json", proto, table} {
		w.do("GET", eventsPath+"?limit=10", "", "Accept", accept).must(200)
		for _, query := range []string{"", "?limit=20"} {
			cutOff := func() {
				defer func() {
					if r := recover(); r != any(http.ErrAbortHandler) { //nolint:errorlint // as it is thrown
						t.Errorf("%s %s: a list that has begun ended with %v", query, accept, r)
					}
				}()
				w.do("GET", eventsPath+query, "", "Accept", accept)
			}
			if query == "" && accept != proto {
				cutOff()
				continue
			}
			// It is read to its end before it begins, whether there is room for it or not.
			w.do("GET", eventsPath+query, "", "Accept", accept).must(500)
			undo := w.readNothingAhead()
			w.do("GET", eventsPath+query, "", "Accept", accept).must(500)
			undo()
		}
	}
	spoil("needle-3")
	for _, accept := range []string{"application/json", proto, table} {
		for _, query := range []string{"", "?limit=10", "?labelSelector=app%3Da3"} {
			w.do("GET", eventsPath+query, "", "Accept", accept).must(500)
		}
		w.do("GET", eventsPath+"?labelSelector=app%3Da4", "", "Accept", accept).must(200)
		w.do("GET", eventsPath+"/a3", "", "Accept", accept).must(500)
		w.do("GET", eventsPath+"/a4", "", "Accept", accept).must(200)
	}
}

// TestDamagedEventIsNeverServed (R13): damage in a stored event is an error in every form that is made of it, and for who
// changes the event.
func TestDamagedEventIsNeverServed(t *testing.T) {
	t.Parallel()
	const needle = "needle"
	w := newWorld(t)
	w.do("POST", eventsPath, newEvent("a", `"note":"`+needle+`"`)).must(201)
	w.do("POST", eventsPath, newEvent("b")).must(201)
	w.stop()
	path := filepath.Join(w.store.Dir, "log-00000000000000000002.db")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(file, []byte(needle), []byte("NEEDLE")), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	for _, path := range []string{eventsPath, eventsPath + "/a", corePath, corePath + "/a"} {
		for _, accept := range []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			w.do("GET", path, "", "Accept", accept).must(500)
		}
	}
	w.do("PATCH", eventsPath+"/a", `{"note":"new"}`, "Content-Type", mergePatch).must(500)
	report, err := w.db.Check(t.Context(), nil)
	if err != nil || !strings.Contains(fmt.Sprint(report.Problems), "checksum mismatch") {
		t.Errorf("the check says %v, %v", report, err)
	}
}

// buggy panics over one event, as a bug in the codec would while it looks at the
// pages of the store.
type buggy struct{ *bolt.DB }

func (b buggy) look(v *store.View) {
	if v.Name == "bug" {
		panic("a bug in the codec")
	}
}

func (b buggy) Get(ctx context.Context, key store.Key, look func(*store.View) error) error {
	return b.DB.Get(ctx, key, func(v *store.View) error { b.look(v); return look(v) })
}

func (b buggy) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	return b.DB.List(ctx, q, func(v *store.View) bool { b.look(v); return visit(v) })
}

// TestBugIsNotCalledDamage: a panic while an event is read is answered with 500
// and logged with its stack. It is not reported as damaged data, and does not
// affect other requests.
func TestBugIsNotCalledDamage(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	w := newWorld(t)
	for _, name := range []string{"a", "bug", "c"} {
		w.do("POST", eventsPath, newEvent(name)).must(201)
	}
	w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.config.Store = buggy{w.db}
	server, err := api.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	handler := httpserver.Access(w.config.Log, prometheus.NewRegistry(), server)
	get := func(path, accept string) *httptest.ResponseRecorder {
		log.Reset()
		req := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		req.Header.Set("Authorization", "Bearer good")
		req.Header.Set("Accept", accept)
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, req)
		return rec
	}
	for range 50 { // whatever a request takes, it gives back
		for _, path := range []string{"/bug", "?limit=2", "?limit=10", "?labelSelector=app%3Dbug", ""} {
			for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
				rec := get(eventsPath+path, accept)
				said := log.String()
				if rec.Code != http.StatusInternalServerError || !strings.Contains(said, "a bug in the codec") ||
					!strings.Contains(said, "buggy.look") || strings.Contains(said, "damaged page") {
					t.Fatalf("%s as %s: %d %s, logged: %s", path, accept, rec.Code, rec.Body, said)
				}
			}
		}
		if rec := get(eventsPath+"/a", "application/json"); rec.Code != http.StatusOK {
			t.Fatalf("another event: %d %s", rec.Code, rec.Body)
		}
	}
	w.do("DELETE", eventsPath+"/bug", "").must(200)
	if err := w.db.Compact(t.Context(), false, nil); err != nil { // closes files that were read
		t.Error(err)
	}
}
