package codec_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// libraryTable is the table that the original would encode.
func libraryTable(c *codec.Codec, f codec.Format, v event.View, meta metav1.ListMeta, events []*eventsv1.Event, first uint64) *metav1.Table {
	table := &metav1.Table{ListMeta: meta, ColumnDefinitions: event.TableColumns(), Rows: []metav1.TableRow{}}
	table.TypeMeta = metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/" + f.TableVersion}
	for i, ev := range events {
		row := metav1.TableRow{Cells: event.TableCells(ev, c.Now())}
		full := codectest.AsView(c, v, ev, first+uint64(i))
		switch f.IncludeObject {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object.Object = full
		default:
			p := asPartial(full).(*metav1.PartialObjectMetadata)
			p.APIVersion = "meta.k8s.io/" + f.TableVersion
			row.Object.Object = p
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

func TestTableEqualsLibrary(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	r := eventtest.NewRandom(5)
	for _, include := range []metav1.IncludeObjectPolicy{"", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject} {
		for _, f := range []codec.Format{{}, {Pretty: true}, {Media: request.YAML}} {
			f.As, f.IncludeObject = codec.Table, include
			for i, version := range []string{"v1", "v1beta1"} {
				f.TableVersion = version
				for _, v := range codectest.Views {
					events := []*eventsv1.Event{r.Event(""), r.Event(""), r.Event("")}[:i+1]
					list := metav1.ListMeta{ResourceVersion: "99"}
					want := codectest.Library(t, f, libraryTable(c, f, v, list, events, 1))
					if diff := cmp.Diff(want, appendList(t, c, f, v, list, events)); diff != "" {
						t.Fatalf("list %+v, -library +ours:\n%s", f, diff)
					}
					checkObjectTable(t, c, f, v, r.Event(""), uint64(i)*77)
				}
			}
		}
	}
}

// TestTableObjectIsUntouched: what a terminal must not get is left out of cells, and is in the object as it was stored.
func TestTableObjectIsUntouched(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	ev := eventtest.NewRandom(5).Event("")
	ev.Note = "red \x1b[31m and \u202ereversed"
	f := codec.Format{As: codec.Table, IncludeObject: metav1.IncludeObject, TableVersion: "v1"}
	var table struct {
		Rows []struct {
			Cells  []any
			Object eventsv1.Event
		}
	}
	if err := json.Unmarshal([]byte(appendList(t, c, f, event.EventsV1, metav1.ListMeta{}, []*eventsv1.Event{ev})), &table); err != nil {
		t.Fatal(err)
	}
	if cell, note := table.Rows[0].Cells[6], table.Rows[0].Object.Note; cell != "red �[31m and �reversed" || note != ev.Note {
		t.Errorf("the cell is %q, the note of the object %q", cell, note)
	}
}

func checkObjectTable(t *testing.T, c *codec.Codec, f codec.Format, v event.View, ev *eventsv1.Event, revision uint64) {
	t.Helper()
	var meta metav1.ListMeta
	if revision > 0 {
		meta.ResourceVersion = strconv.FormatUint(revision, 10)
	}
	want := codectest.Library(t, f, libraryTable(c, f, v, meta, []*eventsv1.Event{ev}, revision))
	got, err := c.AppendObject(nil, f, v, codectest.Record(t, c, ev, revision))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Fatalf("object %+v, -library +ours:\n%s", f, diff)
	}
}
