package admin_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/dump"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/waittest"
)

// serve serves files as the admin listener does, and returns what asks it. Questions are as in [admin.NewHandler].
func serve(t *testing.T, f files, questions map[string]http.Handler, refused func(string)) (asks *admin.Remote, dataDir, url string) {
	t.Helper()
	dataDir = t.TempDir()
	token, err := admin.NewToken(dataDir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(admin.NewHandler(f.Local, token, nil, questions, refused))
	t.Cleanup(server.Close)
	asks, err = admin.NewRemote(dataDir, strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return asks, dataDir, server.URL
}

// TestRemote: a service that has the files open answers what the files do.
func TestRemote(t *testing.T) {
	t.Parallel()
	f := newFiles(t, bolt.Options{})
	backups := 0
	f.Backed = func() { backups++ }
	for _, name := range []string{"a", "b", "c"} {
		f.put(t, newEvent(name), false)
	}
	asks, _, _ := serve(t, f, map[string]http.Handler{
		"config": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "listen-http = :8080") }),
	}, nil)
	var config bytes.Buffer
	if err := asks.Config(t.Context(), &config); err != nil || config.String() != "listen-http = :8080" {
		t.Errorf("config: %q, %v", config.String(), err)
	}
	for name, after := range map[string]uint64{"all": 0, "changes": 1} {
		var here, there bytes.Buffer
		open := func(to *bytes.Buffer) admin.Open {
			return func(revision uint64, _ int64) io.Writer {
				if revision != f.db.Revision() {
					t.Errorf("%s: revision %d, want %d", name, revision, f.db.Revision())
				}
				return to
			}
		}
		if err := f.Export(t.Context(), after, open(&here)); err != nil {
			t.Fatal(err)
		}
		if err := asks.Export(t.Context(), after, open(&there)); err != nil || there.String() != here.String() || there.Len() < 500 {
			t.Errorf("%s: %v, %q, want %q", name, err, there.String(), here.String())
		}
	}
	var backup bytes.Buffer
	total := int64(0)
	if err := asks.Backup(t.Context(), func(_ uint64, bytes int64) io.Writer { total = bytes; return &backup }); err != nil || total != int64(backup.Len()) || backups != 1 {
		t.Errorf("backup: %d of %d bytes, noted %d times: %v", backup.Len(), total, backups, err)
	}
	checked, err := asks.Check(t.Context(), func(int64, int64) {})
	if err != nil || checked.Live != 3 || len(checked.Problems) > 0 {
		t.Errorf("check: %+v, %v", checked, err)
	}
	compacted, err := asks.Compact(t.Context(), true, nil)
	if err != nil || compacted.Events != 3 || compacted.Before == 0 || compacted.After == 0 {
		t.Errorf("compact: %+v, %v", compacted, err)
	}
	used, err := asks.Usage(t.Context(), 1<<30, []byte("[{name: all, where: type=Normal, keep: 1h}]"))
	if err != nil {
		t.Fatal(err)
	}
	if len(used.Namespaces) != 1 || used.Namespaces[0].Name != "shop" {
		t.Errorf("usage: %+v", used)
	}
	if _, err := asks.Usage(t.Context(), 1<<30, []byte("[{")); err == nil || !strings.Contains(err.Error(), "--rules-file") {
		t.Errorf("usage by bad rules: %v", err)
	}
	if err := asks.Export(t.Context(), 99999, nil); err == nil || !strings.Contains(err.Error(), "yet to come") {
		t.Errorf("an export of what is to come: %v", err)
	}
}

// TestRemoteImport: what is imported through a service is what its answer counts, also when it comes again.
func TestRemoteImport(t *testing.T) {
	t.Parallel()
	from, to := newFiles(t, bolt.Options{}), newFiles(t, bolt.Options{})
	for _, name := range []string{"a", "b"} {
		from.put(t, newEvent(name), false)
	}
	file := filepath.Join(t.TempDir(), "export")
	if err := os.WriteFile(file, []byte(from.export(t, 0)), 0o600); err != nil {
		t.Fatal(err)
	}
	asks, _, _ := serve(t, to, nil, nil)
	load := func() (sum admin.Imported) {
		if _, err := dump.Read(t.Context(), []string{file}, dump.Options{}, func(items []dump.Item) error {
			more, err := asks.Import(t.Context(), admin.Arrivals(items, true, false))
			sum.Add(more)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if sum := load(); sum.Created != 2 || sum.Unchanged != 0 {
		t.Errorf("%+v", sum)
	}
	if sum := load(); sum.Created != 0 || sum.Unchanged != 2 {
		t.Errorf("again: %+v", sum)
	}
}

// TestHandlerAsksForTheSecret: who may not read the data directory may not ask the service for it either.
func TestHandlerAsksForTheSecret(t *testing.T) {
	t.Parallel()
	asks, dir, url := serve(t, newFiles(t, bolt.Options{}), map[string]http.Handler{"token": http.NotFoundHandler()}, nil)
	for _, path := range []string{"backup", "export?after=0", "import", "fsck", "compact", "token", ""} {
		for _, authorization := range []string{"", "Bearer ", "Bearer x"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+admin.Path+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", authorization)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _ = resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d", path, authorization, resp.StatusCode)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "admin.token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "admin.token"), []byte("guessed"), 0o600); err != nil {
		t.Fatal(err)
	}
	guesses, err := admin.NewRemote(dir, strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guesses.Check(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "admin.token") {
		t.Errorf("a guess: %v", err)
	}
	if _, err := asks.Check(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// unread is a client that reads nothing until it is let go.
type unread struct {
	*httptest.ResponseRecorder
	begun, leave chan struct{}
	once         sync.Once
}

func (u *unread) Write(p []byte) (int, error) {
	u.once.Do(func() { close(u.begun) })
	<-u.leave
	return u.ResponseRecorder.Write(p)
}

// TestLongWorkIsBounded: one backup or check runs at a time, and eight exports. Others are told to come again.
func TestLongWorkIsBounded(t *testing.T) {
	t.Parallel()
	f := newFiles(t, bolt.Options{})
	f.put(t, newEvent("a"), false)
	var refused []string
	h := admin.NewHandler(f.Local, "token", nil, nil, func(limit string) { refused = append(refused, limit) })
	ask := func(w http.ResponseWriter, path string) {
		r := httptest.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, admin.Path+path, nil)
		r.Header.Set("Authorization", "Bearer token")
		h.ServeHTTP(w, r)
	}
	leave := make(chan struct{})
	var asking sync.WaitGroup
	for _, path := range []string{"backup", "export?after=0&at=0", "export?after=0&at=0", "export?after=0&at=0", "export?after=0&at=0",
		"export?after=0&at=0", "export?after=0&at=0", "export?after=0&at=0", "export?after=0&at=0"} {
		u := &unread{httptest.NewRecorder(), make(chan struct{}), leave, sync.Once{}}
		asking.Go(func() { ask(u, path) })
		waittest.Within(t, u.begun)
	}
	for path, want := range map[string]int{"check": 409, "backup": 409, "usage?maxBytes=1": 409, "compact?compress=true": 409, "export?after=0&at=0": 429} {
		w := httptest.NewRecorder()
		ask(w, path)
		if w.Code != want || (w.Header().Get("Retry-After") == "5") != (want == 429) {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
	if diff := cmp.Diff([]string{"exports"}, refused); diff != "" {
		t.Errorf("refusals that are counted (-want +got):\n%s", diff)
	}
	close(leave)
	waittest.Join(t, &asking)
	for _, path := range []string{"check", "export?after=0&at=0"} {
		w := httptest.NewRecorder()
		if ask(w, path); w.Code != http.StatusOK {
			t.Errorf("%s afterwards: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"compact?compress=x", "usage?maxBytes=x", "export?after=x", "import"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, admin.Path+path, strings.NewReader("no arrivals"))
		r.Header.Set("Authorization", "Bearer token")
		if h.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestBodies: a body that comes late or is too large is answered and counted as the API does it.
func TestBodies(t *testing.T) {
	t.Parallel()
	var refused []string
	h := admin.NewHandler(newFiles(t, bolt.Options{}).Local, "token", nil, map[string]http.Handler{"token": &admin.TokenChecker{}},
		func(limit string) { refused = append(refused, limit) })
	for _, test := range []struct {
		path string
		body io.Reader
		code int
	}{
		{"import", iotest.ErrReader(os.ErrDeadlineExceeded), http.StatusRequestTimeout},
		{"usage?maxBytes=1", iotest.ErrReader(os.ErrDeadlineExceeded), http.StatusRequestTimeout},
		{"token", iotest.ErrReader(os.ErrDeadlineExceeded), http.StatusRequestTimeout},
		{"token", bytes.NewReader(make([]byte, 1<<17)), http.StatusRequestEntityTooLarge},
		{"token", iotest.ErrReader(io.ErrUnexpectedEOF), http.StatusBadRequest},
		{"token", strings.NewReader("no request"), http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, admin.Path+test.path, test.body)
		r.Header.Set("Authorization", "Bearer token")
		if h.ServeHTTP(w, r); w.Code != test.code {
			t.Errorf("%s: %d %s, want %d", test.path, w.Code, w.Body, test.code)
		}
	}
	if want := []string{"body-time", "body-time", "body-time", "body"}; !slices.Equal(refused, want) {
		t.Errorf("counted are %q, want %q", refused, want)
	}
}

// TestLastBackup: the time of a backup is found again, and a damaged one is none.
func TestLastBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if at := admin.LastBackup(dir); !at.IsZero() {
		t.Errorf("%s before the first backup", at)
	}
	admin.NoteBackup(dir, noon.Add(time.Millisecond), slog.New(slog.DiscardHandler))
	if at := admin.LastBackup(dir); !at.Equal(noon) {
		t.Errorf("%s, want %s", at, noon)
	}
	if err := os.WriteFile(filepath.Join(dir, "last-backup"), []byte("soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if at := admin.LastBackup(dir); !at.IsZero() {
		t.Errorf("%s of a damaged note", at)
	}
}
