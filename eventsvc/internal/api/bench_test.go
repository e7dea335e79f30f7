package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/service"
)

// benchServer is a server with n stored events.
func benchServer(b *testing.B, n int) *api.Server {
	b.Helper()
	return benchServerOf(b, n, func(i int) (path, body string) {
		return apitest.EventsPath, apitest.NewEvent(fmt.Sprintf("stored-%06d", i))
	})
}

// benchServerOf is a server with n stored events, from 1 to n.
func benchServerOf(b *testing.B, n int, event func(i int) (path, body string)) *api.Server {
	b.Helper()
	s, _ := benchServerIn(b, bolt.Options{Dir: b.TempDir()})
	fill(b, s, n, event)
	b.SetParallelism(64)
	b.ReportAllocs()
	b.ResetTimer() // the stored events are not what is measured
	return s
}

// benchServerIn is a server of the events in a store.
func benchServerIn(b *testing.B, o bolt.Options) (*api.Server, *bolt.DB) {
	b.Helper()
	c, err := codec.New("k8s.io")
	if err != nil {
		b.Fatal(err)
	}
	db, err := bolt.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	s, err := api.New(api.Config{
		Store: db, Timeline: db.Timeline(), Codec: c, Verify: apitest.Verify, Policy: apitest.OpenPolicy, Limits: apitest.UsualLimits,
		Fresh: db.Fresh, Withdrawn: apitest.NotWithdrawn,
		Probe: (&service.Health{}).Handler, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	return s, db
}

// fill stores n events, from 1 to n.
func fill(b *testing.B, s *api.Server, n int, event func(i int) (path, body string)) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				path, body := event(int(i))
				if code, _ := request(b, s, "POST", path, body); code != 201 {
					b.Error(code)
				}
			}
		})
	}
	wg.Wait()
}

// sink is a response writer that costs nothing.
type sink struct {
	header http.Header
	code   int
	bytes  int
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(code int) { s.code = code }

func (s *sink) Write(b []byte) (int, error) { s.bytes += len(b); return len(b), nil }

func request(b *testing.B, s *api.Server, method, path, body string, headers ...string) (int, int) {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(b.Context(), method, "http://x"+path, reader)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := &sink{header: http.Header{}}
	s.ServeHTTP(w, req)
	return w.code, w.bytes
}

func BenchmarkCreate(b *testing.B) {
	s := benchServer(b, 0)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if code, _ := request(b, s, "POST", apitest.EventsPath, apitest.NewEvent(fmt.Sprintf("e%d", n.Add(1)))); code != 201 {
				b.Error(code)
			}
		}
	})
}

// BenchmarkBulk stores requests of 500 events: new ones, and later versions of them. An operation is an event.
func BenchmarkBulk(b *testing.B) {
	const lines = 500
	for name, later := range map[string]bool{"new": false, "later": true} {
		b.Run(name, func(b *testing.B) {
			s := benchServer(b, 0)
			b.SetParallelism(4)
			var n atomic.Int64
			send := func(at int64, version int) {
				var body strings.Builder
				for i := range lines {
					line := apitest.CopyEvent("shop", fmt.Sprintf("e%d", at*lines+int64(i)), fmt.Sprint("u", at*lines+int64(i)), fmt.Sprint(version))
					body.WriteString(strings.Replace(line, `"reason"`, fmt.Sprintf(`"count":%d,"reason"`, version), 1) + "\n")
				}
				if code, _ := request(b, s, "POST", apitest.BulkPath, body.String(), "Content-Type", "application/x-ndjson"); code != 200 {
					b.Error(code)
				}
			}
			if later {
				for at := range int64(20) {
					send(at, 1)
				}
				b.ResetTimer()
			}
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if i%lines > 0 {
						continue
					}
					if at := n.Add(1); later {
						send(at%20, 1+int(at/20+1))
					} else {
						send(at, 1)
					}
				}
			})
		})
	}
}

func BenchmarkGet(b *testing.B) {
	s := benchServer(b, 100)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if code, _ := request(b, s, "GET", apitest.EventsPath+"/stored-000007", ""); code != 200 {
				b.Error(code)
			}
		}
	})
}

func BenchmarkPatch(b *testing.B) {
	s := benchServer(b, 1000)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := n.Add(1)
			body := fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}}`, i+1)
			if code, _ := request(b, s, "PATCH", fmt.Sprintf(apitest.EventsPath+"/stored-%06d", i%1000+1), body, "Content-Type", apitest.MergePatch); code != 200 {
				b.Error(code)
			}
		}
	})
}

func BenchmarkList10000(b *testing.B) {
	s := benchServer(b, 10000)
	for name, accept := range map[string]string{
		"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf", "table": "application/json;as=Table;g=meta.k8s.io;v=v1",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, n := request(b, s, "GET", apitest.EventsPath, "", "Accept", accept)
				b.SetBytes(int64(n))
			}
		})
	}
	b.Run("pages", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			request(b, s, "GET", apitest.EventsPath+"?limit=500", "")
		}
	})
}

// audience is a response writer that counts the events of a watch, each of
// which ends in a line feed.
type audience struct {
	header http.Header
	seen   *atomic.Int64 // by all watchers
	first  sync.Once
	ready  func() // the headers were sent
}

func (a *audience) Header() http.Header { return a.header }

func (a *audience) WriteHeader(int) { a.first.Do(a.ready) }

func (a *audience) Flush() {}

func (a *audience) Write(b []byte) (int, error) {
	a.seen.Add(int64(bytes.Count(b, []byte("\n"))))
	return len(b), nil
}

// BenchmarkWatch100 creates events that a hundred watchers see: what an
// operation takes beyond BenchmarkCreate is a hundred deliveries.
func BenchmarkWatch100(b *testing.B) {
	const watchers = 100
	s := benchServer(b, 0)
	ctx, cancel := context.WithCancel(b.Context())
	var open, done sync.WaitGroup
	var seen atomic.Int64
	for range watchers {
		open.Add(1)
		done.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://x"+apitest.EventsPath+"?watch=true&resourceVersion=1", nil)
			if err != nil {
				b.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer good")
			s.ServeHTTP(&audience{header: http.Header{}, seen: &seen, ready: open.Done}, req)
		})
	}
	open.Wait()
	b.ResetTimer()
	for i := range b.N {
		if code, _ := request(b, s, "POST", apitest.EventsPath, apitest.NewEvent(fmt.Sprintf("e%d", i))); code != 201 {
			b.Error(code)
		}
	}
	for seen.Load() < int64(watchers*b.N) {
		runtime.Gosched()
	}
	b.StopTimer()
	cancel()
	done.Wait()
}
