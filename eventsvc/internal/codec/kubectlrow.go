package codec

import (
	"encoding/json"
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// emptyTable is the JSON of a table without rows, which ends in "]}". Without
// headers the columns are null.
func emptyTable(version string, meta metav1.ListMeta, headers bool) []byte {
	table := metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metaGroup + "/" + version},
		ListMeta: meta,
		Rows:     []metav1.TableRow{},
	}
	if headers {
		table.ColumnDefinitions = event.TableColumns()
	}
	text, _ := json.Marshal(table) // strings and numbers: no error
	return text
}

// appendRow appends the row of an event: its cells, for which everything but the
// metadata is decoded, and the object that the client asks for (includeObject).
func (c *Codec) appendRow(dst []byte, s *stored, rec *store.View, f Format, v event.View, now time.Time) ([]byte, error) {
	ev := new(eventsv1.Event)
	if err := ev.Unmarshal(s.rest); err != nil {
		return dst, corrupt(rec, err)
	}
	ev.Name = rec.Name
	dst = appendCells(append(dst, `{"cells":`...), event.TableCells(ev, now))
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

// appendCells appends the cells of a row: strings, and the count.
func appendCells(dst []byte, cells []any) []byte {
	for i, cell := range cells {
		dst = separate(dst, '[', i)
		if text, ok := cell.(string); ok {
			dst = appendQuoted(dst, text)
		} else {
			dst = fmt.Append(dst, cell)
		}
	}
	return append(dst, ']')
}
