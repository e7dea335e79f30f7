package bolttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/eventsvc/internal/watch"
	"tidings.example/shared/waittest"
)

// PartsOptions are those that a test can set.
type PartsOptions struct {
	Policy       maintenance.Policy
	SegmentBytes int64 // default 1 MiB
	MaxBytes     int64 // default: no limit
	QueueLength  int   // default 100
	QueueBytes   int64 // default 1 MiB
	Now          func() time.Time
	Log          *slog.Logger
}

// Parts are what writes to the files of the engine and what keeps them within limits, without the engine: for the
// tests of packages commit and maintenance. They are open until the test ends.
type Parts struct {
	Files       seglog.IndexedLog
	Hub         *watch.Hub
	Usage       *usage.Usage
	Committer   *commit.Committer
	Maintenance *maintenance.Maintenance
	Registry    *prometheus.Registry // has the metrics of both
}

// OpenParts makes files in a new directory, and commits what is written until the test ends. Then it opens a copy of
// the files as a kill would leave them, which must have the same records.
func OpenParts(t testing.TB, o PartsOptions) *Parts {
	t.Helper()
	o.SegmentBytes, o.QueueLength, o.QueueBytes = cmp.Or(o.SegmentBytes, 1<<20), cmp.Or(o.QueueLength, 100), cmp.Or(o.QueueBytes, 1<<20)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Parts{Registry: prometheus.NewRegistry()}
	stop := make(chan struct{})
	dir := t.TempDir()
	writer, err := p.open(dir, &o)
	if err == nil {
		err = writer.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Hub = watch.NewHub(writer.Last, 64, 1<<20)
	clock, _ := commit.NewClock(o.Now, time.Time{}, time.Hour)
	same := func(err error) error { return err }
	p.Committer = commit.New(commit.Config{
		Queue: commit.NewQueue(o.QueueLength, o.QueueBytes), Writer: writer, Hub: p.Hub, Usage: p.Usage, Clock: clock, Stop: stop, ReadError: same,
		Merger: commit.NewMerger(commit.Merger{Index: p.Files.Index, Records: p.Files.Log, Usage: p.Usage, MaxKeys: 1000, Unmerged: func() {}, Log: o.Log}),
	})
	p.Maintenance = maintenance.New(maintenance.Config{
		Policy: o.Policy, Records: p.Files, Usage: p.Usage, Clock: clock, Writer: writer, Do: p.Committer.Queue.Do, Flush: p.Committer.Flush,
		Delete: func(ctx context.Context, seen []store.Seen) error {
			return (&commit.Deletions{Queue: p.Committer.Queue, Stop: stop}).Do(ctx, seen)
		},
		Expires: func() bool { return true }, ReadError: same, SegmentBytes: o.SegmentBytes, Log: o.Log,
	})
	p.Registry.MustRegister(append(p.Committer.Collectors(), p.Maintenance.Collectors()...)...)
	var running sync.WaitGroup
	running.Go(p.Committer.Run)
	running.Go(func() { p.Committer.Merger.Run(stop) })
	t.Cleanup(func() {
		close(stop)
		waittest.Join(t, &running)
		_ = writer.AwaitCheckpoint() // one that has failed changes no record
		p.wantAfterKill(t, dir, &o)
		if err := errors.Join(writer.Close(), p.Files.Log.Close(), p.Files.Index.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// open opens the files.
func (p *Parts) open(dir string, o *PartsOptions) (*commit.Writer, error) {
	var err error
	if p.Files.Index, err = index.Open(dir, func() []byte { return []byte("id") }); err != nil {
		return nil, err
	}
	if p.Files.Log, err = seglog.Open(dir, 1<<24, func() uint64 { return p.Hub.Published() }); err != nil {
		return nil, err
	}
	if len(p.Files.Log.Segments()) == 0 {
		head, err := p.Files.Log.NewHead(2, p.Files.Index.StoreID, 1, false)
		if err != nil {
			return nil, err
		}
		p.Files.Log.Add(head)
	}
	p.Files.Log.SetCompactRevision(1)
	if p.Usage, err = usage.New(dir, usage.Limits{MaxBytes: o.MaxBytes, OverLimit: func() {}}, p.Files); err != nil {
		return nil, err
	}
	return commit.OpenWriter(commit.WriterConfig{
		Dir: dir, StoreID: p.Files.Index.StoreID, SegmentBytes: o.SegmentBytes, Records: p.Files.Log,
		Health: commit.NewHealth(o.Log), Rotated: p.Usage.Measure, Log: o.Log,
	})
}

// wantAfterKill opens a copy of the files, and compares its records.
func (p *Parts) wantAfterKill(t testing.TB, dir string, o *PartsOptions) {
	t.Helper()
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Error(err)
		return
	}
	again := &Parts{Hub: p.Hub}
	writer, err := again.open(killed, o)
	if err != nil {
		t.Errorf("after a kill: %v", err)
		return
	}
	if diff := gocmp.Diff(p.records(t), again.records(t)); diff != "" {
		t.Errorf("after a kill: %s", diff)
	}
	if err := errors.Join(writer.Close(), again.Files.Log.Close(), again.Files.Index.Close()); err != nil {
		t.Error(err)
	}
}

// records prints every record.
func (p *Parts) records(t testing.TB) (all []string) {
	t.Helper()
	err := p.Files.Log.View(func(r *seglog.Reader) error {
		all = nil
		put := func(e seglog.Entry) bool {
			all = append(all, fmt.Sprintf("%d %d %d %s %s %x %x", e.Revision, e.Kind, e.Previous, e.Time.UTC(), e.Key, e.Attributes, e.Value))
			return true
		}
		return r.Scan(0, p.Hub.Published(), put, func(e seglog.Entry) bool { return put(seglog.Entry{Revision: e.Revision}) })
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// Create creates an event.
func (p *Parts) Create(t testing.TB, key store.Key, d store.Draft) {
	t.Helper()
	if err := p.Committer.Queue.Submit(&commit.Write{Ctx: t.Context(), Kind: seglog.Created, Key: key, Draft: d}); err != nil {
		t.Fatal(err)
	}
}

// Read returns the newest version of an event, if it exists.
func (p *Parts) Read(t testing.TB, key store.Key) (r store.Record, exists bool) {
	t.Helper()
	err := p.Files.View(func(v index.View, log *seglog.Reader) error {
		newest, _, err := v.Newest(key.String())
		if exists = newest.Live(); !exists || err != nil {
			return err
		}
		e, err := log.Get(newest.Revision())
		if err == nil {
			r = e.Clone()
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return r, exists
}

// Metric returns the value of a gauge, or the count of a histogram.
func (p *Parts) Metric(t testing.TB, name string) float64 {
	t.Helper()
	families, err := p.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if m := f.GetMetric()[0]; f.GetName() == name && m.GetHistogram() != nil {
			return float64(m.GetHistogram().GetSampleCount())
		} else if f.GetName() == name {
			return m.GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}
