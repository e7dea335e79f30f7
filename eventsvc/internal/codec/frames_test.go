package codec_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	apijson "k8s.io/apimachinery/pkg/util/json"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
	"tidings.example/eventsvc/internal/store"
)

type frame struct{ Type, Object string }

// readFrames takes a stream apart with the framers of the libraries.
func readFrames(t *testing.T, f codec.Format, stream []byte) []frame {
	t.Helper()
	framer := runtime.Framer(json.Framer)
	if f.Media == request.Protobuf {
		framer = protobuf.LengthDelimitedFramer
	}
	r := framer.NewFrameReader(io.NopCloser(bytes.NewReader(stream)))
	var frames []frame
	for {
		b := make([]byte, 1<<20)
		n, err := r.Read(b)
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		var ev metav1.WatchEvent
		if f.Media == request.Protobuf {
			err = ev.Unmarshal(b[:n])
		} else {
			err = apijson.Unmarshal(b[:n], &ev)
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame{ev.Type, string(ev.Object.Raw)})
	}
}

// Frames have the type of their change, and each object the right revision.
func TestFrames(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for view, v := range codectest.Views {
		for _, f := range []codec.Format{{}, {Media: request.Protobuf}} {
			got := readFrames(t, f, stream(t, c, f, v))
			object := func(rec *store.View) string {
				b, err := c.AppendObject(nil, f, v, rec)
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSuffix(string(b), "\n")
			}
			want := []frame{
				{"ADDED", object(codectest.Record(t, c, eventtest.Typical(), 41))}, {"BOOKMARK", got[1].Object},
				{"ADDED", object(codectest.Record(t, c, oldStyle(), 7))}, {"MODIFIED", object(codectest.Record(t, c, eventtest.InSeries(), 42))},
				{"DELETED", object(codectest.Record(t, c, eventtest.InSeries(), 43))}, {"BOOKMARK", got[5].Object}, {"ERROR", got[6].Object},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %+v (-want +got):\n%s", view, f, diff)
			}
		}
	}
}

// A version that many watchers see is encoded once for each view and format,
// and no two of them share a form.
func TestFormsAreShared(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	version := &store.Version{Record: store.Record(*codectest.Record(t, c, eventtest.Typical(), 41))}
	delivery := store.Delivery{Type: store.Added, Object: version, Revision: 41}
	all := func() map[string]bool {
		seen := map[string]bool{}
		for _, v := range codectest.Views {
			for _, f := range []codec.Format{{}, {Media: request.Protobuf}, {As: codec.Partial}, {Media: request.Protobuf, As: codec.Partial}} {
				b, err := c.NewFrames(f, v).AppendDelivery(nil, delivery)
				if err != nil {
					t.Fatal(err)
				}
				seen[string(b)] = true
			}
		}
		return seen
	}
	first := all()
	if len(first) != 6 { // metadata are the same in both views
		t.Errorf("%d different forms", len(first))
	}
	version.Value = []byte("damaged") // from here on only remembered forms will do
	if diff := cmp.Diff(first, all()); diff != "" {
		t.Errorf("forms (-first +second):\n%s", diff)
	}
	delivery.Type = store.Removed
	if _, err := c.NewFrames(codec.Format{}, event.EventsV1).AppendDelivery(nil, delivery); err == nil {
		t.Error("a DELETED event came from a damaged value")
	}
}
