package event_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/event"
)

func attributes(fields map[event.Field]string, lbls map[string]string) event.Attributes {
	var f [event.NumFields]string
	for k, v := range fields {
		f[k] = v
	}
	return event.NewAttributes(f, lbls)
}

func TestAttributesReadBack(t *testing.T) {
	t.Parallel()
	long := string(make([]byte, 300))
	a := attributes(map[event.Field]string{event.RegardingKind: "Pod", event.Source: "kubelet", event.Reason: long},
		map[string]string{"b": "2", "a": "", "c/d": long})
	for f := range event.NumFields {
		want := map[event.Field]string{event.RegardingKind: "Pod", event.Source: "kubelet", event.Reason: long}[f]
		if got := string(a.Field(f)); got != want {
			t.Errorf("field %d = %q, want %q", f, got, want)
		}
	}
	for key, want := range map[string]string{"a": "", "b": "2", "c/d": long} {
		if got, ok := a.Lookup(key); !ok || got != want {
			t.Errorf("label %s = %q, %v, want %q", key, got, ok, want)
		}
	}
	if _, ok := a.Lookup("none"); ok {
		t.Error("a label that is not set was found")
	}
}

func TestSelectorMatches(t *testing.T) {
	t.Parallel()
	a := attributes(map[event.Field]string{event.Reason: "Killing", event.Type: "Normal"}, map[string]string{"app": "web", "tier": "3"})
	eq := func(f event.Field, v string) event.FieldRequirement {
		return event.FieldRequirement{Field: f, Value: v}
	}
	not := func(f event.Field, v string) event.FieldRequirement {
		return event.FieldRequirement{Field: f, Value: v, Not: true}
	}
	tests := []struct {
		name   string
		fields []event.FieldRequirement
		labels string
		want   bool
	}{
		{name: "nothing asked", want: true},
		{name: "field equal", fields: []event.FieldRequirement{eq(event.Reason, "Killing")}, want: true},
		{name: "field different", fields: []event.FieldRequirement{eq(event.Reason, "Kill")}},
		{name: "field not", fields: []event.FieldRequirement{not(event.Reason, "Pulled")}, want: true},
		{name: "field not, equal", fields: []event.FieldRequirement{not(event.Reason, "Killing")}},
		{name: "field empty", fields: []event.FieldRequirement{eq(event.RegardingUID, "")}, want: true},
		{name: "all fields must hold", fields: []event.FieldRequirement{eq(event.Reason, "Killing"), eq(event.Type, "Warning")}},
		{name: "namespace", fields: []event.FieldRequirement{eq(event.FieldNamespace, "shop")}, want: true},
		{name: "other namespace", fields: []event.FieldRequirement{eq(event.FieldNamespace, "sho")}},
		{name: "name", fields: []event.FieldRequirement{eq(event.FieldName, "web-1.17")}, want: true},
		{name: "name not", fields: []event.FieldRequirement{not(event.FieldName, "web-1.17")}},
		{name: "label equal", labels: "app=web", want: true},
		{name: "label differs", labels: "app=db"},
		{name: "label not, absent", labels: "zone!=a", want: true},
		{name: "label in", labels: "app in (db,web)", want: true},
		{name: "label notin", labels: "app notin (db,web)"},
		{name: "label exists", labels: "tier", want: true},
		{name: "label absent", labels: "!tier"},
		{name: "label greater", labels: "tier>2", want: true},
		{name: "labels and fields", fields: []event.FieldRequirement{eq(event.Type, "Normal")}, labels: "app=web,!zone", want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reqs, err := labels.ParseToRequirements(tt.labels)
			if err != nil {
				t.Fatal(err)
			}
			s := &event.Selector{Fields: tt.fields, Labels: reqs}
			if got := s.Matches("shop", "web-1.17", a); got != tt.want {
				t.Errorf("Matches = %v, want %v", got, tt.want)
			}
		})
	}
	var none *event.Selector
	if !none.Matches("shop", "web-1.17", a) {
		t.Error("a nil selector must match everything")
	}
}

// Stored bytes are guarded by a checksum; still no bytes at all may make a
// selector panic.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte(attributes(map[event.Field]string{event.Reason: "x"}, map[string]string{"a": "b"})))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(_ *testing.T, b []byte) {
		a := event.Attributes(b)
		for i := range event.NumFields {
			a.Field(i)
		}
		a.Lookup("a")
	})
}
