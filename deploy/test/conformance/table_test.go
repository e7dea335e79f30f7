package conformance_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTable is about the columns that kubectl prints (7).
func TestTable(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	table := func(t *testing.T, path string) object {
		t.Helper()
		return s.do(t, call{method: "GET", path: path, accept: typeJSON + asTable}).expect(http.StatusOK).object()
	}
	// Ages are measured in the server, so ages that stay for a while are used.
	ago := func(d time.Duration, layout string) string { return time.Now().Add(-d).UTC().Format(layout) }
	micro := "2006-01-02T15:04:05.000000Z"
	hours, days := ago(30*time.Hour+30*time.Minute, micro), ago(3*24*time.Hour+12*time.Hour+30*time.Minute, micro)

	t.Run("columns", func(t *testing.T) {
		ev, ref, meta := corev1.Event{}.SwaggerDoc(), corev1.ObjectReference{}.SwaggerDoc(), metav1.ObjectMeta{}.SwaggerDoc()
		var want []map[string]any
		for _, c := range []struct {
			name, format, description string
			priority                  int
		}{
			{"Last Seen", "", ev["lastTimestamp"], 0}, {"Type", "", ev["type"], 0}, {"Reason", "", ev["reason"], 0},
			{"Object", "", ev["involvedObject"], 0}, {"Subobject", "", ref["fieldPath"], 1}, {"Source", "", ev["source"], 1},
			{"Message", "", ev["message"], 0}, {"First Seen", "", ev["firstTimestamp"], 1}, {"Count", "", ev["count"], 1}, {"Name", "name", meta["name"], 1},
		} {
			want = append(want, map[string]any{"name": c.name, "type": "string", "format": c.format, "description": c.description, "priority": c.priority})
		}
		for _, group := range []string{eventsV1, coreV1} {
			equalJSON(t, group, table(t, in(group, ns))["columnDefinitions"], marshal(t, want))
		}
	})
	cells := func(name, body string) string {
		group := eventsV1
		if json.Valid([]byte(body)) && object(parse(t, []byte(body)))["involvedObject"] != nil {
			group = coreV1
		}
		s.post(t, in(group, ns), body).expect(http.StatusCreated)
		return marshal(t, table(t, in(eventsV1, ns, name)).at("rows.0.cells"))
	}
	for _, c := range []struct{ name, body, want string }{
		{"single", newEvent(ns, "single", `{"eventTime":"`+hours+`","note":"  hello \n"}`), `["30h","Normal","Because","pod/p1","","example.com/ctl, ctl-1","hello","30h",1,"single"]`},
		{"series", newEvent(ns, "series", `{"eventTime":"`+days+`","series":{"count":7,"lastObservedTime":"`+hours+`"},"regarding":{"fieldPath":"spec.x"}}`),
			`["30h","Normal","Because","pod/p1","spec.x","example.com/ctl, ctl-1","hello","3d12h",7,"series"]`},
		{"legacy", oldEvent(ns, "legacy", `{"firstTimestamp":"`+ago(84*time.Hour+30*time.Minute, time.RFC3339)+`","lastTimestamp":"`+ago(30*time.Hour+30*time.Minute, time.RFC3339)+`","count":2}`),
			`["30h","Normal","Because","pod/p1","","kubelet, h1","hello","3d12h",2,"legacy"]`},
		{"mixed", oldEvent(ns, "mixed", `{"firstTimestamp":null,"lastTimestamp":null,"source":{"host":null},"reportingInstance":"ctl-1","count":null}`),
			`["<unknown>","Normal","Because","pod/p1","","kubelet, ctl-1","hello","<unknown>",1,"mixed"]`},
		{"empty", `{"metadata":{"name":"empty"},"involvedObject":{"namespace":"` + ns + `"}}`, `["<unknown>","","","","","","","<unknown>",1,"empty"]`},
		{"kind", `{"metadata":{"name":"kind"},"involvedObject":{"kind":"NODE","namespace":"` + ns + `"},"series":{"count":4}}`, `["<unknown>","","","node","","","","<unknown>",4,"kind"]`},
		{"future", newEvent(ns, "future", `{"eventTime":"`+ago(-time.Hour, micro)+`"}`), `["<invalid>","Normal","Because","pod/p1","","example.com/ctl, ctl-1","hello","<invalid>",1,"future"]`},
	} {
		t.Run("cells "+c.name, func(t *testing.T) { equalJSON(t, "cells", json.RawMessage(cells(c.name, c.body)), c.want) })
	}
	t.Run("metadata and order", func(t *testing.T) {
		list := s.get(t, in(eventsV1, ns)+"?limit=3").object()
		got := table(t, in(eventsV1, ns)+"?limit=3")
		equalJSON(t, "metadata", got["metadata"], marshal(t, list["metadata"]))
		for i, name := range list.names() {
			if got.text(fmt.Sprintf("rows.%d.object.metadata.name", i)) != name || got.text(fmt.Sprintf("rows.%d.object.kind", i)) != "PartialObjectMetadata" {
				t.Errorf("row %d: %v", i, got.at(fmt.Sprintf("rows.%d", i)))
			}
		}
		one := table(t, in(eventsV1, ns, "single"))
		if one.text("metadata.resourceVersion") != one.text("rows.0.object.metadata.resourceVersion") {
			t.Errorf("metadata %v", one["metadata"])
		}
	})
	t.Run("includeObject", func(t *testing.T) {
		if got := table(t, in(eventsV1, ns, "single")+"?includeObject=Object"); got.text("rows.0.object.kind") != "Event" || got.text("rows.0.object.note") == "" {
			t.Errorf("row %v", got.at("rows.0"))
		}
		if got := table(t, in(eventsV1, ns, "single")+"?includeObject=None"); got.at("rows.0.object") != nil {
			t.Errorf("row %v", got.at("rows.0"))
		}
	})
	t.Run("old version", func(t *testing.T) {
		a := s.do(t, call{method: "GET", path: in(eventsV1, ns), accept: typeJSON + ";as=Table;g=meta.k8s.io;v=v1beta1"}).expect(http.StatusOK).object()
		if a.text("apiVersion") != "meta.k8s.io/v1beta1" {
			t.Errorf("apiVersion %s", a.text("apiVersion"))
		}
	})
}
