package codec

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// emptyTable is the JSON of a table without rows, which ends in "]}". Without
// headers the columns are null.
func emptyTable(version string, meta metav1.ListMeta, headers bool) ([]byte, error) {
	table := metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metaGroup + "/" + version},
		ListMeta: meta,
		Rows:     []metav1.TableRow{},
	}
	if headers {
		table.ColumnDefinitions = event.TableColumns()
	}
	return json.Marshal(table)
}

// appendRow appends the row of an event to a table: its cells, which need it
// decoded, and what the client asked to have beside them.
func (c *Codec) appendRow(dst []byte, s *stored, rec *store.Record, f Format, v event.View, now time.Time) ([]byte, error) {
	ev, err := c.decode(s, rec)
	if err != nil {
		return dst, err
	}
	cells, err := json.Marshal(event.TableCells(ev, now))
	if err != nil {
		return dst, fmt.Errorf("encode table cells: %w", err)
	}
	dst = append(dst, `{"cells":`...)
	dst = append(dst, cells...)
	dst = append(dst, `,"object":`...)
	switch f.IncludeObject {
	case metav1.IncludeNone:
		dst = append(dst, "null"...)
	case metav1.IncludeObject:
		dst = c.appendObjectJSON(dst, s, v)
	default:
		dst = c.appendPartialJSON(dst, s, f.TableVersion)
	}
	return append(dst, '}'), nil
}

// appendObjectTable appends a table of one event, with its resourceVersion.
func (c *Codec) appendObjectTable(dst []byte, f Format, v event.View, rec *store.Record) ([]byte, error) {
	var meta metav1.ListMeta
	if rec.Revision > 0 {
		meta.ResourceVersion = strconv.FormatUint(rec.Revision, 10)
	}
	l := c.NewList(f, v)
	dst, err := l.AppendItem(l.AppendHead(dst, meta), rec)
	return l.AppendTail(dst), err
}
