package admin_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// files is a store in files of its own.
type files struct {
	admin.Local
	db *bolt.DB
}

func newFiles(t *testing.T, o bolt.Options) files {
	t.Helper()
	o.Dir = t.TempDir()
	db, err := bolt.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return files{admin.Local{DB: db, Codec: codectest.New(t, "k8s.io")}, db}
}

// export returns an export of what was written after a revision.
func (f files) export(t *testing.T, after uint64) string {
	t.Helper()
	var out bytes.Buffer
	if err := f.Export(t.Context(), after, func(uint64, int64) io.Writer { return &out }); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// load imports lines.
func (f files) load(t *testing.T, lines string) admin.Imported {
	t.Helper()
	return apitest.ImportLines(t, f.Local, lines)
}

// put stores an event, with the mark of a report that is believed.
func (f files) put(t *testing.T, ev *eventsv1.Event, believed bool) {
	t.Helper()
	d, err := f.Codec.Draft(ev)
	if err != nil {
		t.Fatal(err)
	}
	if report, ok := event.ReportOf(ev); ok && believed {
		d.Attributes = d.Attributes.WithReport(report)
	}
	_, err = f.db.Update(t.Context(), store.Key{Namespace: ev.Namespace, Name: ev.Name}, store.Any, func(*store.Record) (store.Decision, error) {
		return store.Decision{Op: store.Put, Draft: d}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// newEvent is an event that was observed at noon.
func newEvent(name string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon)},
		EventTime:  metav1.NewMicroTime(noon), Reason: "R", Type: "Normal", Action: "A", ReportingController: "example.com/c", ReportingInstance: "i",
	}
}

// newReport is an event that reports a gap.
func newReport(name string) *eventsv1.Event {
	ev := newEvent(name)
	ev.Reason, ev.ReportingController = event.GapReason, event.GapReporter
	ev.Annotations = map[string]string{event.GapFrom: "2026-03-04T10:00:00Z", event.GapTo: "2026-03-04T11:00:00Z"}
	return ev
}

// gaps returns how many gaps are believed.
func (f files) gaps(t *testing.T) int {
	t.Helper()
	gaps, _, err := f.db.Timeline().Gaps(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	return len(gaps)
}

// dropped returns the rules of the events that report drops and are believed.
func (f files) dropped(t *testing.T) (rules []string) {
	t.Helper()
	q := store.TimeQuery{Range: store.Range{To: noon.Add(time.Hour)}, Selector: &event.Selector{Dropped: true}}
	_, err := f.db.Timeline().Observed(t.Context(), q, func(v *store.View, _ store.Moment) bool {
		g, _ := v.Attributes.Gap()
		rules = append(rules, g.Rule)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestOnceBeside: an event that arrives under its longer name, and then under its own, is stored once.
func TestOnceBeside(t *testing.T) {
	t.Parallel()
	f := newFiles(t, bolt.Options{})
	own, beside := newEvent("web"), newEvent("web")
	beside.Name = event.CopyName("", own.Name, own.UID)
	sum, err := f.Import(t.Context(), []admin.Arrival{{Event: beside}, {Event: own}})
	if n := f.db.Stats().Events; err != nil || n != 1 || sum.Created != 1 || sum.Unchanged+sum.Changed != 1 {
		t.Errorf("%d events, %+v: %v", n, sum, err)
	}
}

// TestDropped: an import believes what a rule is said to have dropped as it believes gaps.
func TestDropped(t *testing.T) {
	t.Parallel()
	from := newFiles(t, bolt.Options{})
	for name, believed := range map[string]bool{"true": true, "forged": false} {
		ev := newReport(name)
		ev.Reason, ev.Annotations[event.DroppedRule], ev.Annotations[event.DroppedCount] = event.DroppedReason, name, "3"
		from.put(t, ev, believed)
	}
	to := newFiles(t, bolt.Options{})
	to.load(t, from.export(t, 0))
	if rules := to.dropped(t); !slices.Equal(rules, []string{"true"}) || to.gaps(t) != 0 {
		t.Errorf("%v, and %d gaps", rules, to.gaps(t))
	}
}

// TestGaps: an import believes the reports of gaps in a file, but for those that the exporting server did not believe.
// So whole and incremental exports bring both kinds over as they were.
func TestGaps(t *testing.T) {
	t.Parallel()
	from := newFiles(t, bolt.Options{})
	from.put(t, newEvent("ordinary"), false)
	start := from.db.Revision()
	from.put(t, newReport("true"), true)
	from.put(t, newReport("forged"), false)
	for name, lines := range map[string]string{"whole": from.export(t, 0), "changes": from.export(t, start)} {
		to := newFiles(t, bolt.Options{})
		to.load(t, lines)
		if n := to.gaps(t); n != 1 || strings.Count(lines, `"believed":false`) != 1 {
			t.Errorf("%s: %d gaps: %s", name, n, lines)
		}
		if sum := to.load(t, lines); sum.Created+sum.Changed > 0 {
			t.Errorf("%s again: %+v", name, sum)
		}
		if again := to.export(t, 0); strings.Count(again, `"believed":false`) != 1 {
			t.Errorf("%s, exported again: %s", name, again)
		}
	}
	to := newFiles(t, bolt.Options{})
	to.load(t, strings.ReplaceAll(from.export(t, 0), `,"believed":false`, "")) // as other programs write them
	if n := to.gaps(t); n != 2 {
		t.Errorf("%d gaps of a file that disbelieves none", n)
	}
	if sum := to.load(t, from.export(t, 0)); sum.Changed != 1 || to.gaps(t) != 1 {
		t.Errorf("%d gaps when one is disbelieved: %+v", to.gaps(t), sum)
	}
}

// TestCursors: an import believes the cursors of mirrors in a file as it believes gaps.
func TestCursors(t *testing.T) {
	t.Parallel()
	from := newFiles(t, bolt.Options{})
	for name, believed := range map[string]bool{"true": true, "forged": false} {
		ev := newReport(name)
		ev.Reason, ev.Labels = event.CursorReason, map[string]string{event.ClusterLabel: "east"}
		ev.Annotations = map[string]string{event.CursorVersion: "7", event.CursorComplete: "2026-03-04T11:00:00Z"}
		from.put(t, ev, believed)
	}
	to := newFiles(t, bolt.Options{})
	to.load(t, from.export(t, 0))
	for name, believed := range map[string]bool{"true": true, "forged": false} {
		err := to.db.Get(t.Context(), store.Key{Namespace: "shop", Name: name}, func(v *store.View) error {
			if v.Attributes.Believed() != believed {
				t.Errorf("the %s cursor is believed: %v", name, !believed)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if sum := to.load(t, strings.ReplaceAll(from.export(t, 0), `,"believed":false`, "")); sum.Changed != 1 {
		t.Errorf("a file that disbelieves none: %+v", sum)
	}
}
