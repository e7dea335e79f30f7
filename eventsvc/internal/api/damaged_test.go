package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
			func() {
				defer func() {
					if r := recover(); r != any(http.ErrAbortHandler) { //nolint:errorlint // as it is thrown
						t.Errorf("%s %s: a list that has begun ended with %v", query, accept, r)
					}
				}()
				w.do("GET", eventsPath+query, "", "Accept", accept)
			}()
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
