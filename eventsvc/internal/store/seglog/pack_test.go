package seglog

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// storedRecord returns a record of an event.
func storedRecord(t testing.TB, revision uint64, change func(*Entry)) []byte {
	t.Helper()
	c, err := codec.New("k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	ev := eventtest.Typical()
	ev.CreationTimestamp = metav1.NewTime(time.Unix(1_764_000_000, 0))
	d, err := c.Draft(ev)
	if err != nil {
		t.Fatal(err)
	}
	e := Entry{Revision: revision, Kind: Created, Time: time.Unix(1_764_000_000, int64(revision)), Key: []byte(ev.Namespace + "/" + ev.Name), NamespaceLen: len(ev.Namespace), Attributes: d.Attributes, Value: d.Value}
	if change != nil {
		change(&e)
	}
	return AppendEntry(nil, &e)
}

// TestPackedEntries: what a record's value says too is left out, and made again; any other record
// has another form.
func TestPackedEntries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Entry)
		packed bool
	}{
		"as it is": {nil, true},
		"a change": {func(e *Entry) { e.Kind, e.Previous = Modified, 3 }, true},
		"a mark": {func(e *Entry) {
			e.Attributes = event.Attributes(e.Attributes).WithGap(event.Gap{From: time.Unix(60, 0), To: time.Unix(120, 0)})
		}, true},
		"a deletion":  {func(e *Entry) { e.Kind, e.Previous, e.Attributes, e.Value = Deleted, 3, nil, nil }, false},
		"another key": {func(e *Entry) { e.Key = []byte("shop/other"); e.NamespaceLen = 4 }, false},
		"another field": {func(e *Entry) {
			e.Attributes = event.NewAttributes([event.NumFields]string{event.Reason: "Other"}, nil)
		}, false},
		"no attributes":    {func(e *Entry) { e.Attributes = nil }, false},
		"no event":         {func(e *Entry) { e.Value = []byte("value") }, false},
		"a later previous": {func(e *Entry) { e.Previous = 9 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := storedRecord(t, 7, c.change)
			packed, ok := packEntry(nil, 1_764_000_000_000_000_000, 7, record[:len(record)-recordTrailer])
			if ok != c.packed || ok && len(packed) > len(record)-100 {
				t.Errorf("packed: %v, %d bytes of %d", ok, len(packed), len(record))
			}
			b, err := parseBlock(packBlock(t, 6, 7, []packedRecord{{7, record}}))
			if err != nil {
				t.Fatal(err)
			}
			wantRecords(t, b, []packedRecord{{7, record}})
		})
	}
}

// FuzzPacked: whatever is packed, it is refused, or read without harm.
func FuzzPacked(f *testing.F) {
	record := storedRecord(f, 7, nil)
	packed, _ := packEntry(nil, 0, 7, record[:len(record)-recordTrailer])
	f.Add(packed)
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, packed []byte) {
		body, ok := unpackEntry(nil, 5, 7, packed)
		if !ok && len(body) > 0 || len(body) > 3*len(packed)+100 {
			t.Errorf("%d bytes of %d, %v", len(body), len(packed), ok)
		}
		_, _ = splitBody(7, body)
	})
}

func BenchmarkUnpack(b *testing.B) {
	record := storedRecord(b, 7, nil)
	packed, _ := packEntry(nil, 0, 7, record[:len(record)-recordTrailer])
	var room []byte
	b.ReportAllocs()
	for b.Loop() {
		room, _ = unpackEntry(room[:0], 0, 7, packed)
	}
}
