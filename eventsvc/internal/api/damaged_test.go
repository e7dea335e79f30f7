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

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/service"
)

// TestDamagedEventIsNeverListed (R13): a list that comes upon damage is an error
// in every form, or is cut off if some of it is out already; the others go on.
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
			// It is read to its end before it begins, in full if there is room for it.
			w.do("GET", eventsPath+query, "", "Accept", accept).must(500)
			undo := w.server.ReadNothingAhead()
			cutOff()
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

// TestDamagedFormIsNeverServed (R13): damage in the form of an event that an
// answer is not made of does not change the answer; who is answered with the
// damaged form, or changes the event, is told.
func TestDamagedFormIsNeverServed(t *testing.T) {
	t.Parallel()
	const json, yaml, proto, needle = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "needle"
	inJSON := []byte(`"note":"` + needle)
	for name, c := range map[string]struct {
		spoil func(file []byte) []byte
		codes map[string]int
	}{
		"JSON": {
			func(file []byte) []byte { return bytes.ReplaceAll(file, inJSON, []byte(`"note":"NEEDLE`)) },
			map[string]int{json: 500, yaml: 500, proto: 200},
		},
		"protobuf": {
			func(file []byte) []byte {
				away := []byte(`"note":"away--`)
				file = bytes.ReplaceAll(bytes.ReplaceAll(file, inJSON, away), []byte(needle), []byte("NEEDLE"))
				return bytes.ReplaceAll(file, away, inJSON)
			},
			map[string]int{json: 200, yaml: 200, proto: 500},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.do("POST", eventsPath, newEvent("a", `"note":"`+needle+`"`)).must(201)
			w.do("POST", eventsPath, newEvent("b")).must(201)
			paths := []string{eventsPath, eventsPath + "/a", corePath, corePath + "/a"}
			before := map[string]string{}
			for _, path := range paths {
				for accept := range c.codes {
					before[path+accept] = string(w.do("GET", path, "", "Accept", accept).must(200).body)
				}
			}
			w.stop()
			path := filepath.Join(w.store.Dir, "log-00000000000000000002.db")
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.spoil(file), 0o600); err != nil {
				t.Fatal(err)
			}
			w.start()
			for _, path := range paths {
				for accept, code := range c.codes {
					a := w.do("GET", path, "", "Accept", accept).must(code)
					if diff := cmp.Diff(before[path+accept], string(a.body)); code == 200 && diff != "" {
						t.Errorf("%s as %s: %s", path, accept, diff)
					}
				}
				table := "application/json;as=Table;v=v1;g=meta.k8s.io"
				w.do("GET", path, "", "Accept", table).must(500)
				w.do("GET", path+"?includeObject=None", "", "Accept", table).must(c.codes[proto])
			}
			w.do("PATCH", eventsPath+"/a", `{"note":"new"}`, "Content-Type", mergePatch).must(500)
			report, err := w.db.Check(t.Context(), nil)
			if err != nil || !strings.Contains(fmt.Sprint(report.Problems), "checksum mismatch") {
				t.Errorf("the check says %v, %v", report, err)
			}
		})
	}
}

// buggy panics over one event, as a bug in the codec would while it looks at the
// pages of the store.
type buggy struct{ *bolt.DB }

func (b buggy) look(r *store.Record) {
	if r.Name == "bug" {
		panic("a bug in the codec")
	}
}

func (b buggy) Show(ctx context.Context, key store.Key, uses store.Part, visit func(*store.Record)) error {
	return b.DB.Show(ctx, key, uses, func(r *store.Record) { b.look(r); visit(r) })
}

func (b buggy) List(ctx context.Context, q store.Query) (store.Page, error) {
	if visit := q.Visit; visit != nil {
		q.Visit = func(r *store.Record) bool { b.look(r); return visit(r) }
	}
	return b.DB.List(ctx, q)
}

// TestBugIsNotCalledDamage: a panic over an event is answered with 500 and logged
// with where it was, does not send anybody to the backups, and hinders nobody.
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
	handler := service.Access(w.config.Log, prometheus.NewRegistry(), server)
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
	if err := w.db.Compact(t.Context(), nil); err != nil { // closes files that were read
		t.Error(err)
	}
}
