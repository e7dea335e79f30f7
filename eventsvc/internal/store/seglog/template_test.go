package seglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
	"tidings.example/shared/randtest"
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

// templated returns how many records of a block have a template.
func templated(b *inflatedBlock) (n int) {
	for _, row := range b.rows {
		if row.form >= formTemplate {
			n++
		}
	}
	return n
}

// TestTemplates: what a template can say is written with one; any other record is written as it is.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change    func(*Entry)
		templated bool
	}{
		"as it is": {nil, true},
		"a change": {func(e *Entry) { e.Kind, e.Previous = Modified, 3 }, true},
		"a mark": {func(e *Entry) {
			e.Attributes = event.Attributes(e.Attributes).WithReport(event.Report{Gap: event.Gap{From: time.Unix(60, 0), To: time.Unix(120, 0)}})
		}, true},
		"a deletion":  {func(e *Entry) { e.Kind, e.Previous, e.Attributes, e.Value = Deleted, 3, nil, nil }, false},
		"another key": {func(e *Entry) { e.Key = []byte("shop/other"); e.NamespaceLen = 4 }, false},
		"another field": {func(e *Entry) {
			e.Attributes = event.NewAttributes([event.NumFields]string{event.Reason: "Other"}, nil)
		}, false},
		"no attributes":    {func(e *Entry) { e.Attributes = nil }, false},
		"no event":         {func(e *Entry) { e.Value = []byte("value") }, false},
		"no value":         {func(e *Entry) { e.Value = nil }, false},
		"half a value":     {func(e *Entry) { e.Value = e.Value[:len(e.Value)/2] }, false},
		"a later previous": {func(e *Entry) { e.Previous = 9 }, false},
		"a long number":    {func(e *Entry) { e.Value = append(e.Value, 0x78, 0x85, 0x00) }, false}, // count, not in the fewest bytes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := []packedRecord{{6, storedRecord(t, 6, nil)}, {7, storedRecord(t, 7, c.change)}, {8, storedRecord(t, 8, nil)}}
			b, err := parseBlock(packBlock(t, 5, 8, records))
			if err != nil {
				t.Fatal(err)
			}
			if b.rows[1].form >= formTemplate != c.templated || templated(b) < 2 {
				t.Errorf("with a template: %d of the records", templated(b))
			}
			wantRecords(t, b, records)
		})
	}
}

// TestOneTemplate: events of one shape have one template, whatever their texts are.
func TestOneTemplate(t *testing.T) {
	t.Parallel()
	c, err := codec.New("k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	var records []packedRecord
	at := time.UnixMicro(1_764_000_000_123_456).UTC()
	for revision := uint64(6); revision < 26; revision++ {
		at = at.Add(time.Duration(revision) * 123_457 * time.Microsecond)
		ev := eventtest.Typical()
		ev.CreationTimestamp, ev.EventTime = metav1.NewTime(at), metav1.NewMicroTime(at)
		ev.UID = types.UID(fmt.Sprintf("0a1b2c3d-4e5f-4a6b-8c7d-%012x", revision))
		ev.Reason, ev.Action = fmt.Sprint("Reason", revision%7), fmt.Sprint("Act", revision%5)
		ev.Labels = map[string]string{"app": fmt.Sprint("app-", revision%3), "team": fmt.Sprint(revision)}
		ev.Annotations = map[string]string{event.SourceUID: string(ev.UID), event.SourceVersion: fmt.Sprint(48_000_000 + revision)}
		ev.Regarding.Name = fmt.Sprint("web-", revision%2)
		ev.Name = fmt.Sprintf("%s.%x", ev.Regarding.Name, at.UnixNano()+int64(revision))
		if revision%2 == 0 {
			ev.Name = event.CopyName("east", ev.Name, ev.UID)
		}
		d, err := c.Draft(ev)
		if err != nil {
			t.Fatal(err)
		}
		e := Entry{
			Revision: revision, Kind: Created, Time: at.Add(time.Hour), Key: []byte(ev.Namespace + "/" + ev.Name), NamespaceLen: len(ev.Namespace),
			Attributes: event.Attributes(d.Attributes).WithVersion(48_000_000 + revision), Value: d.Value,
		}
		records = append(records, packedRecord{revision, AppendEntry(nil, &e)})
	}
	b, err := parseBlock(packBlock(t, 5, 30, records))
	if err != nil {
		t.Fatal(err)
	}
	wantRecords(t, b, records)
	if len(b.templates) != 1 || templated(b) != len(records) {
		t.Errorf("%d templates of %d records, want one of all", len(b.templates), templated(b))
	}
}

// randomRecords returns records behind a revision, of events of every shape, and of the usual one.
func randomRecords(t testing.TB, seed, after uint64, n int) (records []packedRecord) {
	t.Helper()
	c, err := codec.New("k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	rnd, events := rand.New(rand.NewPCG(seed, 2)), eventtest.NewRandom(seed)
	revision, at := after, time.Unix(1_764_000_000, 0)
	for range n {
		ev := eventtest.Typical()
		switch rnd.IntN(4) {
		case 0:
			ev = events.Event("events.k8s.io/v1")
		case 1:
			ev.Name = fmt.Sprintf("%s.%x", ev.Regarding.Name, rnd.Uint64()>>rnd.IntN(60))
		case 2:
			ev.Regarding.ResourceVersion = fmt.Sprint(rnd.Uint64() >> rnd.IntN(64))
		}
		d, err := c.Draft(ev)
		if err != nil {
			t.Fatal(err)
		}
		revision += 1 + rnd.Uint64N(2)
		at = at.Add(time.Duration(rnd.Int64N(1e12) >> rnd.IntN(40)))
		e := Entry{Revision: revision, Kind: Created, Time: at, Key: []byte(ev.Namespace + "/" + ev.Name), NamespaceLen: len(ev.Namespace), Attributes: d.Attributes, Value: d.Value}
		if rnd.IntN(3) == 0 {
			e.Kind, e.Previous = Modified, revision-1-rnd.Uint64N(4)
		}
		records = append(records, packedRecord{revision, AppendEntry(nil, &e)})
	}
	return records
}

// TestRandomBlocks: events of every shape come out of a block as they were, most of them of a template.
func TestRandomBlocks(t *testing.T) {
	t.Parallel()
	seed := randtest.Seed(t)
	for i := range uint64(20) {
		records := randomRecords(t, seed+i, 5, 1+int(i)*10)
		b, err := parseBlock(packBlock(t, 5, 1000, records))
		if err != nil {
			t.Fatal(err)
		}
		wantRecords(t, b, records)
		if n := templated(b); n < len(records)*3/4 {
			t.Errorf("%d of %d records have a template", n, len(records))
		}
	}
}

// TestTemplateBombs: a small block of large records is refused before they are made.
func TestTemplateBombs(t *testing.T) {
	t.Parallel()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	const rows = 50
	long := bytes.Repeat([]byte("x"), 1<<20)
	steps := func(c column, n int) []byte {
		return append([]byte{byte(Created)}, bytes.Repeat(binary.AppendUvarint(nil, uint64(stepColumn+int(c))), n)...)
	}
	notes := binary.AppendUvarint(nil, rows)
	for range rows {
		notes = binary.AppendUvarint(append(notes, 1), uint64(len(long)/rows)+noteLength)
	}
	notes = append(notes, long[:len(long)/rows*rows]...)
	for name, c := range map[string]struct {
		template []byte
		columns  map[column][]byte
	}{
		"literals": {append(binary.AppendUvarint([]byte{byte(Created)}, uint64(stepLiteral+len(long))), long...), nil},
		"words":    {steps(columnHost, 1), map[column][]byte{columnHost: append(appendText([]byte{0}, long), bytes.Repeat([]byte{1}, rows-1)...)}},
		"objects":  {steps(columnObject, 1000), map[column][]byte{columnObject: bytes.Repeat([]byte{wordObject}, 1000*rows)}},
		"notes":    {steps(columnNote, 2), nil},
		"names":    {steps(columnName, 2), map[column][]byte{columnName: make([]byte, 4*rows)}},
	} {
		content := append([]byte{0, 1}, appendText(nil, c.template)...) // no UUID, one template
		for of := range numColumns {
			cells := c.columns[of]
			switch of {
			case columnForm:
				cells = bytes.Repeat([]byte{formTemplate}, rows)
			case columnTime, columnPrevious, columnSeen, columnMark:
				cells = make([]byte, rows)
			case columnLabels, columnCounts:
				cells = append([]byte{0, 0}, bytes.Repeat([]byte{1}, rows-1)...)
			}
			content = appendText(content, cells)
		}
		if b, err := parseBlock(sealBlock(encoder.EncodeAll(notes, nil), encoder.EncodeAll(content, nil), nil)); !errors.Is(err, errBlockContent) {
			t.Errorf("%s: it is taken for a block of %d records, %v", name, b.Len(), err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var records []packedRecord
	for i := range uint64(fullBlockRecords) {
		records = append(records, packedRecord{i + 1, storedRecord(b, i+1, nil)})
	}
	key, value := packBlock(b, 0, fullBlockRecords, records)
	var block inflatedBlock
	b.ReportAllocs()
	for b.Loop() {
		if err := block.Parse(key, value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	block, err := parseBlock(packBlock(b, 0, 9, []packedRecord{{7, storedRecord(b, 7, nil)}}))
	if err != nil {
		b.Fatal(err)
	}
	var record recordBytes
	b.ReportAllocs()
	for b.Loop() {
		record, _ = block.Append(record.bytes[:0], 0)
	}
}
