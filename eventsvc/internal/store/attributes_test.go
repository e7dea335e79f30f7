package store_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/store"
)

func attributes(fields map[store.Field]string, lbls map[string]string) store.Attributes {
	var f [store.NumFields]string
	for k, v := range fields {
		f[k] = v
	}
	return store.NewAttributes(f, lbls)
}

func TestAttributesReadBack(t *testing.T) {
	t.Parallel()
	long := string(make([]byte, 300))
	a := attributes(map[store.Field]string{store.RegardingKind: "Pod", store.Source: "kubelet", store.Reason: long},
		map[string]string{"b": "2", "a": "", "c/d": long})
	for f := range store.NumFields {
		want := map[store.Field]string{store.RegardingKind: "Pod", store.Source: "kubelet", store.Reason: long}[f]
		if got := string(a.Field(f)); got != want {
			t.Errorf("field %d = %q, want %q", f, got, want)
		}
	}
	for key, want := range map[string]string{"a": "", "b": "2", "c/d": long} {
		if got, ok := a.Label(key); !ok || string(got) != want {
			t.Errorf("label %s = %q, %v, want %q", key, got, ok, want)
		}
	}
	if _, ok := a.Label("none"); ok {
		t.Error("a label that is not set was found")
	}
}

func TestSelectorMatches(t *testing.T) {
	t.Parallel()
	key := store.Key{Namespace: "shop", Name: "web-1.17"}
	a := attributes(map[store.Field]string{store.Reason: "Killing", store.Type: "Normal"}, map[string]string{"app": "web", "tier": "3"})
	eq := func(f store.Field, v string) store.FieldRequirement {
		return store.FieldRequirement{Field: f, Value: v}
	}
	not := func(f store.Field, v string) store.FieldRequirement {
		return store.FieldRequirement{Field: f, Value: v, Not: true}
	}
	tests := []struct {
		name   string
		fields []store.FieldRequirement
		labels string
		want   bool
	}{
		{name: "nothing asked", want: true},
		{name: "field equal", fields: []store.FieldRequirement{eq(store.Reason, "Killing")}, want: true},
		{name: "field different", fields: []store.FieldRequirement{eq(store.Reason, "Kill")}},
		{name: "field not", fields: []store.FieldRequirement{not(store.Reason, "Pulled")}, want: true},
		{name: "field not, equal", fields: []store.FieldRequirement{not(store.Reason, "Killing")}},
		{name: "field empty", fields: []store.FieldRequirement{eq(store.RegardingUID, "")}, want: true},
		{name: "all fields must hold", fields: []store.FieldRequirement{eq(store.Reason, "Killing"), eq(store.Type, "Warning")}},
		{name: "namespace", fields: []store.FieldRequirement{eq(store.FieldNamespace, "shop")}, want: true},
		{name: "other namespace", fields: []store.FieldRequirement{eq(store.FieldNamespace, "sho")}},
		{name: "name", fields: []store.FieldRequirement{eq(store.FieldName, "web-1.17")}, want: true},
		{name: "name not", fields: []store.FieldRequirement{not(store.FieldName, "web-1.17")}},
		{name: "label equal", labels: "app=web", want: true},
		{name: "label differs", labels: "app=db"},
		{name: "label not, absent", labels: "zone!=a", want: true},
		{name: "label in", labels: "app in (db,web)", want: true},
		{name: "label notin", labels: "app notin (db,web)"},
		{name: "label exists", labels: "tier", want: true},
		{name: "label absent", labels: "!tier"},
		{name: "label greater", labels: "tier>2", want: true},
		{name: "labels and fields", fields: []store.FieldRequirement{eq(store.Type, "Normal")}, labels: "app=web,!zone", want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reqs, err := labels.ParseToRequirements(tt.labels)
			if err != nil {
				t.Fatal(err)
			}
			s := &store.Selector{Fields: tt.fields, Labels: reqs}
			if got := s.Matches(key, a); got != tt.want {
				t.Errorf("Matches = %v, want %v", got, tt.want)
			}
		})
	}
	var none *store.Selector
	if !none.Matches(key, a) {
		t.Error("a nil selector must match everything")
	}
}

// Stored bytes are guarded by a checksum; still no bytes at all may make a
// selector panic.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte(attributes(map[store.Field]string{store.Reason: "x"}, map[string]string{"a": "b"})))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(_ *testing.T, b []byte) {
		a := store.Attributes(b)
		for i := range store.NumFields {
			a.Field(i)
		}
		a.Label("a")
	})
}
