// Package logstore builds, starts and fills VictoriaLogs, the log store that some rows measure beside eventsvc. People
// search weeks of events in such a store today. It has no watches, no versions, and does not sync before it answers.
package logstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
)

// Version is the version of VictoriaLogs.
const Version = "v1.52.1"

const module = "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@" + Version

// Store is a running log store.
type Store struct {
	*proc.Process
	Dir string // of its data

	addr netip.AddrPort
}

const readyWithin = time.Minute

// Start builds the log store from its module in a directory, and starts it there without data.
func Start(ctx context.Context, dir string) (*Store, error) {
	build := exec.CommandContext(ctx, "go", "install", module)
	build.Dir, build.Env = dir, append(os.Environ(), "GOBIN="+dir, "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", module, err, said)
	}
	addr, err := proc.FreeAddr()
	if err != nil {
		return nil, err
	}
	s := &Store{Dir: filepath.Join(dir, "data"), addr: addr}
	s.Process, err = proc.Start(filepath.Join(dir, "victoria-logs.log"), exec.Command(filepath.Join(dir, "victoria-logs"),
		"-storageDataPath="+s.Dir, "-httpListenAddr="+s.addr.String(), "-retentionPeriod=60d", "-loggerLevel=ERROR"))
	if err != nil {
		return nil, err
	}
	if _, err := s.Ready(ctx, s.url("/health"), readyWithin); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Store) url(path string) string { return "http://" + s.addr.String() + path }

// Fill stores the events of a file of JSON lines.
func (s *Store) Fill(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url("/insert/jsonline?_stream_fields=namespace,reportingController&_time_field=_time&_msg_field=_msg"), f)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/stream+json")
	return errors.Join(do(req), s.tell(ctx, "/internal/force_flush"))
}

// Still is how long the files must not have changed before they count as merged.
const still = 5 * time.Second

// Merge has the store merge its files, which it would do after some time anyway.
func (s *Store) Merge(ctx context.Context) error {
	if err := s.tell(ctx, "/internal/force_merge"); err != nil {
		return err
	}
	for before := int64(-1); ; {
		now, err := proc.DiskBytes(s.Dir)
		if err != nil || now == before {
			return err
		}
		before = now
		select {
		case <-time.After(still):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Store) tell(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(path), nil)
	if err != nil {
		return err
	}
	return do(req)
}

func do(req *http.Request) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", req.URL.Path, resp.Status, text)
	}
	return err
}

// Question asks a query of LogsQL about a range again and again. It sets size to the length of the last answer.
func (s *Store) Question(query string, from, to time.Time, size *int) load.Spec {
	path := "/select/logsql/query?" + url.Values{"query": {query}, "start": {from.UTC().Format(time.RFC3339)}, "end": {to.UTC().Format(time.RFC3339)}}.Encode()
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + s.addr.String() + "\r\n\r\n")
	return load.Spec{
		Addr: s.addr, Conns: 1,
		Next: func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: func(i int, a *load.Answer) error {
			*size = a.Size
			return load.Status(http.StatusOK)(i, a)
		},
	}
}
