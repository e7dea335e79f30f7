package codec_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
	"tidings.example/eventsvc/internal/store"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares bytes with a file. Binary ones are kept as a hex dump.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	text := string(got)
	if strings.Contains(name, "protobuf") || strings.HasSuffix(name, "value") {
		text = hex.Dump(got)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// oldStyle is an event as the old recorder makes it.
func oldStyle() *eventsv1.Event {
	first := metav1.Date(2026, 5, 4, 12, 10, 0, 0, time.UTC)
	ev := &eventsv1.Event{
		Reason: "BackOff", Note: "Back-off restarting <web>", Type: "Warning",
		DeprecatedFirstTimestamp: first, DeprecatedLastTimestamp: metav1.NewTime(first.Add(20 * time.Minute)), DeprecatedCount: 4,
		ReportingController: "kubelet",
	}
	ev.Name, ev.Namespace, ev.UID, ev.CreationTimestamp = "old", "shop", "b0a7", first
	ev.DeprecatedSource.Component, ev.DeprecatedSource.Host = "kubelet", "n1"
	ev.Regarding.Kind, ev.Regarding.Namespace, ev.Regarding.Name = "Pod", "shop", "web-0"
	return ev
}

// goldenFormats are all formats of objects and lists.
var goldenFormats = map[string]codec.Format{
	"json": {}, "pretty.json": {Pretty: true}, "yaml": {Media: request.YAML}, "protobuf": {Media: request.Protobuf},
	"partial.json": {As: codec.Partial}, "partial.yaml": {Media: request.YAML, As: codec.Partial},
	"partial.protobuf":   {Media: request.Protobuf, As: codec.Partial},
	"table.json":         {As: codec.Table, TableVersion: "v1"},
	"table.v1beta1.json": {As: codec.Table, TableVersion: "v1beta1", IncludeObject: metav1.IncludeObject},
	"table.pretty.json":  {As: codec.Table, TableVersion: "v1", IncludeObject: metav1.IncludeNone, Pretty: true},
	"table.yaml":         {Media: request.YAML, As: codec.Table, TableVersion: "v1"},
}

var viewFolders = map[string]event.View{"events": event.EventsV1, "core": event.CoreV1}

func TestGoldenObjectsAndLists(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	remaining := int64(7)
	for folder, v := range viewFolders {
		for name, f := range goldenFormats {
			b, err := c.AppendObject(nil, f, v, codectest.Record(t, c, eventtest.InSeries(), 41))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, folder+"/object."+name, b)
			list := metav1.ListMeta{ResourceVersion: "99", Continue: "dG9rZW4", RemainingItemCount: &remaining}
			golden(t, folder+"/list."+name, []byte(appendList(t, c, f, v, list, []*eventsv1.Event{eventtest.InSeries(), oldStyle()})))
			empty := metav1.ListMeta{ResourceVersion: "99"}
			golden(t, folder+"/empty."+name, []byte(appendList(t, c, f, v, empty, nil)))
		}
	}
}

// The stored form is a format on disk: what was written must stay readable.
func TestGoldenStoredForm(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	golden(t, "stored.value", codectest.Record(t, c, eventtest.InSeries(), 41).Value)
}

func TestGoldenStatus(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	st := &apierrors.NewNotFound(c.Group.Resource(event.EventsV1), "x").ErrStatus
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	for name, f := range map[string]codec.Format{"json": {}, "pretty.json": {Pretty: true}, "yaml": {Media: request.YAML}, "protobuf": {Media: request.Protobuf}} {
		b, err := codec.AppendRuntime(nil, f, st)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "status."+name, b)
	}
}

var frameFormats = map[string]codec.Format{
	"json": {}, "protobuf": {Media: request.Protobuf},
	"partial.json": {As: codec.Partial}, "partial.protobuf": {Media: request.Protobuf, As: codec.Partial},
	"table.json":      {As: codec.Table, TableVersion: "v1"},
	"table.none.json": {As: codec.Table, TableVersion: "v1", IncludeObject: metav1.IncludeNone},
	"table.full.json": {As: codec.Table, TableVersion: "v1", IncludeObject: metav1.IncludeObject},
}

// One stream with every kind of event, in each format.
func TestGoldenFrames(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for folder, v := range viewFolders {
		for name, f := range frameFormats {
			golden(t, folder+"/watch."+name, stream(t, c, f, v))
		}
	}
}

func stream(t *testing.T, c *codec.Codec, f codec.Format, v event.View) []byte {
	t.Helper()
	frames := c.NewFrames(f, v)
	series := &store.Version{Record: store.Record(*codectest.Record(t, c, eventtest.InSeries(), 42))}
	old := &store.Version{Record: store.Record(*codectest.Record(t, c, oldStyle(), 7))}
	var b []byte
	for i, add := range []func() ([]byte, error){
		func() ([]byte, error) {
			return frames.AppendInitial(b, codectest.Record(t, c, eventtest.Typical(), 41))
		},
		func() ([]byte, error) { return frames.AppendBookmark(b, 41, true) },
		func() ([]byte, error) {
			return frames.AppendDelivery(b, store.Delivery{Type: store.Added, Object: old, Revision: 42})
		},
		func() ([]byte, error) {
			return frames.AppendDelivery(b, store.Delivery{Type: store.Modified, Object: series, Revision: 42})
		},
		func() ([]byte, error) {
			return frames.AppendDelivery(b, store.Delivery{Type: store.Removed, Object: series, Revision: 43})
		},
		func() ([]byte, error) { return frames.AppendBookmark(b, 50, false) },
		func() ([]byte, error) {
			return frames.AppendError(b, &apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.").ErrStatus)
		},
	} {
		var err error
		if b, err = add(); err != nil {
			t.Fatal(fmt.Errorf("frame %d: %w", i, err))
		}
	}
	return b
}
