package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// someEvent is an event as reporters and mirrors write it, with members that few have.
func someEvent(r *rand.Rand, at time.Time) *eventsv1.Event {
	object := corev1.ObjectReference{
		Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("web-", r.IntN(5)), UID: types.UID(fmt.Sprintf("%08x-7ca3-4b8e-9d11-%012x", r.IntN(5), 7)),
		APIVersion: "v1", ResourceVersion: fmt.Sprint(r.IntN(1e6)), FieldPath: []string{"", "spec.containers{web}"}[r.IntN(2)],
	}
	ev := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s.%x", object.Name, at.UnixNano()-r.Int64N(1e9)), Namespace: object.Namespace,
			UID: types.UID(fmt.Sprintf("%08x-7ca3-4b8e-9d11-%012x", r.Uint32(), r.Int64N(1<<48))), CreationTimestamp: metav1.NewTime(at.Truncate(time.Second)),
		},
		EventTime: metav1.NewMicroTime(at), ReportingController: "kubelet", ReportingInstance: fmt.Sprint("node-", r.IntN(20)), Action: fmt.Sprint("Action", r.IntN(20)),
		Reason: []string{"BackOff", "Pulled"}[r.IntN(2)], Type: "Warning", Note: someText(r), Regarding: object,
	}
	switch r.IntN(8) {
	case 0:
		ev.Name = fmt.Sprintf("%s.%x.%010x", object.Name, r.Uint64(), r.Int64N(1<<40))
		ev.Labels = map[string]string{event.ClusterLabel: "a", "app": fmt.Sprint(r.IntN(3))}
		ev.Annotations = map[string]string{event.SourceUID: string(ev.UID), event.SourceVersion: fmt.Sprint(r.Uint32()), "a": strings.Repeat("x", r.IntN(700))}
	case 1:
		ev.Series = &eventsv1.EventSeries{Count: int32(r.IntN(9)), LastObservedTime: metav1.NewMicroTime(at.Add(time.Minute))}
		ev.Related = &object
	case 2:
		ev.DeprecatedSource = corev1.EventSource{Component: "kubelet", Host: "node-7"}
		ev.DeprecatedFirstTimestamp, ev.DeprecatedLastTimestamp, ev.DeprecatedCount = metav1.NewTime(at.Add(-time.Hour)), metav1.NewTime(at), 17
	case 3:
		ev.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", Time: &ev.CreationTimestamp, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:note":{}}`)}}}
		ev.OwnerReferences = []metav1.OwnerReference{{Name: "o", UID: ev.UID}}
		ev.GenerateName, ev.Note = "web-", strings.Repeat("long ", 600)
	case 4:
		ev.Name, ev.Regarding.ResourceVersion = "other."+strings.Repeat("0", r.IntN(2))+"abcdef12", "0017"
	}
	return ev
}

// someVersions are rows with versions, some of which have no shape, or are not held.
func someVersions(t testing.TB, r *rand.Rand, n int) []Row {
	t.Helper()
	rows := make([]Row, 0, n)
	revision := uint64(r.IntN(1000))
	for i := range n {
		revision += 1 + uint64(r.IntN(3))
		at := time.UnixMicro(1.7e15 + int64(i)*1e6 + r.Int64N(1e6)).UTC()
		ev := someEvent(r, at)
		value, err := ev.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		value = append([]byte{1}, value...)
		a := event.AttributesOf(ev)
		switch r.IntN(20) {
		case 0:
			value = append(value, 0xa2, 0x06, 3, 'n', 'e', 'w') // a field that nobody knows
		case 1:
			value = []byte(strings.Repeat("no event ", r.IntN(3000)))
		case 2:
			a = a.WithVersion(r.Uint64() / 4)
		case 3:
			a = a.WithReport(event.Report{Cursor: event.Cursor{Cluster: "a", Complete: at}})
		}
		o, _ := a.Occurrence()
		o.Counted += int64(r.IntN(20) / 19)
		row := Row{Revision: revision, Occurrence: o, Namespace: []byte(ev.Namespace), Attributes: a, Note: []byte(ev.Note), Stored: append([]byte("stored "), value...)}
		row.Record = &Record{Kind: byte(1 + r.IntN(2)), Previous: uint64(r.IntN(2)) * uint64(r.IntN(int(revision))), Written: at.UnixNano() + r.Int64N(1e10), Mark: a.Mark(), Value: value}
		if r.IntN(20) == 0 {
			row = Row{Revision: revision, Occurrence: o, Namespace: row.Namespace, Attributes: a, Light: new(event.DimensionsOf(string(row.Namespace), a))}
		}
		rows = append(rows, row)
	}
	return rows
}

// readVersion reads a version and says whether it is the one of a row.
func readVersion(records *Records, at int, row *Row) error {
	v, ok, err := records.Version(at, nil)
	revision, err2 := records.Revision(at)
	switch {
	case errors.Join(err, err2) != nil:
		return errors.Join(err, err2)
	case revision != row.Revision || ok != (row.Stored != nil):
		return fmt.Errorf("revision %d, held %t, want %d, %t", revision, ok, row.Revision, row.Stored != nil)
	case !ok:
		return nil
	case v.Stored != nil:
		if !bytes.Equal(v.Stored, row.Stored) {
			return fmt.Errorf("stored is %.100q, want %.100q", v.Stored, row.Stored)
		}
		return nil
	case !same(&v.Record, row.Record) || v.Written != row.Record.Written || !v.Time.Equal(row.Time) || v.Count != row.Count || v.New != row.New || v.Counted != row.Counted:
		return fmt.Errorf("it is %+v, want %+v", v, row)
	case !bytes.Equal(v.Labels, row.Attributes.LabelSet()):
		return fmt.Errorf("labels %q", v.Labels)
	}
	return nil
}

// TestVersions reads versions as they were stored, in any order, and few of events take the form of those that are
// none.
func TestVersions(t *testing.T) {
	r := rng(t)
	for range 5 {
		rows := someVersions(t, r, 1+r.IntN(1500))
		pieces, last := build(t, rows)
		table, err := Open(last, pieces)
		if err != nil {
			t.Fatal(err)
		}
		table.Check(func(err error) { t.Error(err) })
		records := table.Records()
		for range len(rows) {
			i := r.IntN(len(rows))
			if at, err := records.Search(rows[i].Revision); err != nil || at != i {
				t.Fatalf("revision %d is in row %d, want %d, %v", rows[i].Revision, at, i, err)
			}
			if err := readVersion(records, i, &rows[i]); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
		}
		if at, err := records.Search(last + 1); err != nil || at != len(rows) {
			t.Errorf("behind the last revision is row %d of %d, %v", at, len(rows), err)
		}
		plain, events := 0, 0
		for i := range rows {
			if shape, _ := records.at(colShape, i); shape == plainShape {
				plain++
			}
			if v := rows[i].Record; v != nil && len(v.Value) > 1 && v.Value[0] == 1 {
				events++
			}
		}
		if plain > len(rows)-events+events/20 {
			t.Errorf("%d rows of %d are stored as they are, and %d are events", plain, len(rows), events)
		}
	}
}

// TestFlippedVersions changes bytes of a table. Each version is as it was, or damage is named, and costs 512 rows at
// most.
func TestFlippedVersions(t *testing.T) {
	r := rng(t)
	rows := someVersions(t, r, 1200)
	pieces, last := build(t, rows)
	for at, piece := range pieces {
		for range 4 {
			i := r.IntN(len(piece))
			was := piece[i]
			piece[i] ^= 1 << r.IntN(8)
			lost, first, final := 0, len(rows), 0
			if table, err := Open(last, pieces); err == nil {
				records := table.Records()
				for row := range rows {
					err := readVersion(records, row, &rows[row])
					if err != nil && !errors.Is(err, boltfile.ErrChecksum) {
						t.Fatalf("piece %x, byte %d, row %d: %v", at, i, row, err)
					}
					if err != nil {
						lost, first, final = lost+1, min(first, row), row
					}
				}
				found := false
				if table.Check(func(error) { found = true }); !found {
					t.Errorf("piece %x, byte %d: the check finds nothing", at, i)
				}
			}
			if lost > 0 && final/ChunkRows != first/ChunkRows {
				t.Errorf("piece %x, byte %d: %d rows are lost, from %d to %d", at, i, lost, first, final)
			}
			piece[i] = was
		}
	}
}

// fakeSource has the same texts and numbers for all shapes.
type fakeSource struct{ numbers [numColumns]uint64 }

func (f *fakeSource) ref(int) ([]byte, error)                 { return []byte("\x01\x03app\x03web"), nil }
func (f *fakeSource) value(uint64) ([]byte, error)            { return []byte("value"), nil }
func (f *fakeSource) numbersOf() (*[numColumns]uint64, error) { return &f.numbers, nil }

// FuzzShape reads any bytes as a shape and its cells, none of which may end the process, or make a value that is too
// large. Any bytes as a value are read as they were.
func FuzzShape(f *testing.F) {
	f.Add([]byte{1, 1, 1, 1, stepMessage, stepText, stepEnd, stepLiteral + 1, 'x'}, []byte{1, 1, 1, 2, 'a', 'b'})
	f.Add([]byte{1, 0, 0, 2, stepSuffix, 7, stepUUID, stepDecimal, stepLabels, stepRef + refNote}, bytes.Repeat([]byte{3}, 60))
	f.Add(binary.AppendUvarint([]byte{1, 0, 0, 0}, 1<<40), []byte("\x01\x0a\x04\x0a\x02ab"))
	ev := someEvent(rand.New(rand.NewPCG(1, 1)), time.Unix(1.7e9, 0))
	value, err := ev.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, append([]byte{1}, value...))
	f.Fuzz(func(t *testing.T, steps, cells []byte) {
		read := shapeReader{source: &fakeSource{}, steps: steps, cells: cells}
		if v, err := read.version(7, nil); err == nil && len(v.Value) > 2*maxValue {
			t.Errorf("%d bytes", len(v.Value))
		}
		row := Row{Revision: 1, Attributes: event.NewAttributes([event.NumFields]string{}, nil), Stored: cells, Record: &Record{Kind: 1, Mark: steps, Value: cells}}
		if cells == nil {
			row.Stored = []byte{}
		}
		pieces, last := build(t, []Row{row})
		table, err := Open(last, pieces)
		if err != nil {
			t.Fatal(err)
		}
		row.Occurrence = occurrence(row.Time.UnixMicro(), 0, 0, 0)
		if err := readVersion(table.Records(), 0, &row); err != nil {
			t.Errorf("%q: %v", cells, err)
		}
	})
}
