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
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/httpserver"
)

// TestDamagedEventIsNeverListed (R13): a list that finds damage is answered
// with an error in every format, or cut off if a part was sent already. Other
// requests go on.
func TestDamagedEventIsNeverListed(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	long := strings.Repeat("x", 300<<10)
	for i := range 10 {
		note := fmt.Sprintf(`"note":"needle-%d %s"`, i, long[:1000])
		w.Do("POST", apitest.EventsPath, apitest.NewEvent(fmt.Sprintf("a%d", i), note)).Must(201)
		w.Do("POST", apitest.CorePath, fmt.Sprintf(`{"metadata":{"name":"b%d"},"involvedObject":{"namespace":"default"},"message":"needle-b%d %s"}`, i, i, long)).Must(201)
	}
	spoil := func(texts ...string) {
		t.Helper()
		w.Stop()
		path := filepath.Join(w.Store.Dir, "log-00000000000000000002.db")
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
		w.Start()
	}
	proto, table := "application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io"
	spoil("needle-b8")
	for _, accept := range []string{"application/json", proto, table} {
		w.Do("GET", apitest.EventsPath+"?limit=10", "", "Accept", accept).Must(200)
		for _, query := range []string{"", "?limit=20"} {
			cutOff := func() {
				defer func() {
					if r := recover(); r != any(http.ErrAbortHandler) { //nolint:errorlint // as it is thrown
						t.Errorf("%s %s: a list that has begun ended with %v", query, accept, r)
					}
				}()
				w.Do("GET", apitest.EventsPath+query, "", "Accept", accept)
			}
			if query == "" && accept != proto {
				cutOff()
				continue
			}
			// It is read to its end before it begins, whether there is room for it or not.
			w.Do("GET", apitest.EventsPath+query, "", "Accept", accept).Must(500)
			undo := readNothingAhead(w)
			w.Do("GET", apitest.EventsPath+query, "", "Accept", accept).Must(500)
			undo()
		}
	}
	spoil("needle-3")
	for _, accept := range []string{"application/json", proto, table} {
		for _, query := range []string{"", "?limit=10", "?labelSelector=app%3Da3"} {
			w.Do("GET", apitest.EventsPath+query, "", "Accept", accept).Must(500)
		}
		// No columns were written of it yet, so nobody knows which labels it has.
		w.Do("GET", apitest.EventsPath+"?labelSelector=app%3Da4", "", "Accept", accept).Must(500)
		w.Do("GET", strings.Replace(apitest.EventsPath, "/default/", "/other/", 1)+"?labelSelector=app%3Da4", "", "Accept", accept).Must(200)
		w.Do("GET", apitest.EventsPath+"/a3", "", "Accept", accept).Must(500)
		w.Do("GET", apitest.EventsPath+"/a4", "", "Accept", accept).Must(200)
	}
}

// TestDamagedEventIsNeverServed (R13): damage in a stored event is an error in every form that is made of it, and for
// who changes the event.
func TestDamagedEventIsNeverServed(t *testing.T) {
	t.Parallel()
	const needle = "needle"
	w := apitest.New(t)
	w.Do("POST", apitest.EventsPath, apitest.NewEvent("a", `"note":"`+needle+`"`)).Must(201)
	w.Do("POST", apitest.EventsPath, apitest.NewEvent("b")).Must(201)
	w.Stop()
	path := filepath.Join(w.Store.Dir, "log-00000000000000000002.db")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(file, []byte(needle), []byte("NEEDLE")), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Start()
	for _, path := range []string{apitest.EventsPath, apitest.EventsPath + "/a", apitest.CorePath, apitest.CorePath + "/a"} {
		for _, accept := range []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			w.Do("GET", path, "", "Accept", accept).Must(500)
		}
	}
	w.Do("PATCH", apitest.EventsPath+"/a", `{"note":"new"}`, "Content-Type", apitest.MergePatch).Must(500)
	report, err := w.DB.Check(t.Context(), nil)
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
	w := apitest.New(t)
	for _, name := range []string{"a", "bug", "c"} {
		w.Do("POST", apitest.EventsPath, apitest.NewEvent(name)).Must(201)
	}
	w.Config.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.Config.Store = buggy{w.DB}
	server, err := api.New(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	handler := httpserver.Access(w.Config.Log, prometheus.NewRegistry(), server)
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
				rec := get(apitest.EventsPath+path, accept)
				said := log.String()
				if rec.Code != http.StatusInternalServerError || !strings.Contains(said, "a bug in the codec") ||
					!strings.Contains(said, "buggy.look") || strings.Contains(said, "damaged page") {
					t.Fatalf("%s as %s: %d %s, logged: %s", path, accept, rec.Code, rec.Body, said)
				}
			}
		}
		if rec := get(apitest.EventsPath+"/a", "application/json"); rec.Code != http.StatusOK {
			t.Fatalf("another event: %d %s", rec.Code, rec.Body)
		}
	}
	w.Do("DELETE", apitest.EventsPath+"/bug", "").Must(200)
	if err := w.DB.Compact(t.Context(), false, nil); err != nil { // closes files that were read
		t.Error(err)
	}
}

// readNothingAhead takes the room that lists of the client have to be read ahead in, and
// returns what gives it back.
func readNothingAhead(w *apitest.World) (undo func()) {
	room := w.Server.Room(apitest.GoodClient)
	for room.Spare(1 << 20) {
	}
	return room.Free
}
