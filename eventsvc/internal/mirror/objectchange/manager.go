package objectchange

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manager is an entry of managedFields.
type manager struct {
	name   string
	wrote  time.Time // zero: unknown, as it is of those who scale
	fields map[string]any
}

// managersOf returns the entries that are not about the status, the one that wrote last first.
func managersOf(entries []metav1.ManagedFieldsEntry) (managers []manager) {
	for _, e := range entries {
		if e.Subresource == "status" || e.Manager == "" {
			continue
		}
		m := manager{name: printable(e.Manager)}
		if e.Time != nil {
			m.wrote = e.Time.UTC()
		}
		if e.FieldsV1 != nil {
			_ = json.Unmarshal(e.FieldsV1.Raw, &m.fields) // a manager whose fields cannot be read owns none
		}
		if _, status := m.fields["f:status"]; status && len(m.fields) == 1 {
			continue // written before subresources were told
		}
		managers = append(managers, m)
	}
	slices.SortStableFunc(managers, func(a, b manager) int { return b.wrote.Compare(a.wrote) })
	return managers
}

// lastWrite returns when a manager last wrote one of the hidden fields; without fields: anything.
func lastWrite(managers []manager, fields []Field) time.Time {
	for _, m := range managers {
		if fields == nil || slices.ContainsFunc(fields, func(f Field) bool { return f.Hidden && m.owns(f.steps) }) {
			return m.wrote
		}
	}
	return time.Time{}
}

// Author returns who made changes, and when: the manager that owns one of the changed fields and wrote last, and since the
// object was seen before. A field that was removed has no owner: then any manager that wrote since. The name is empty if
// nobody can be named, and the time zero.
func Author(before, after *Seen, changes []Change) (name string, at time.Time) {
	since := func(m manager) bool { return before == nil || m.wrote.IsZero() || !m.wrote.Before(before.Wrote) }
	removed := slices.ContainsFunc(changes, func(c Change) bool { return c.After == nil })
	for _, m := range after.managers {
		for _, c := range changes {
			if c.After != nil && since(m) && m.owns(c.After.steps) {
				return m.name, m.wrote
			}
		}
	}
	if len(after.managers) > 0 && (before == nil || removed && after.managers[0].wrote.After(before.Wrote)) {
		return after.managers[0].name, after.managers[0].wrote
	}
	return "", time.Time{}
}

// owns reports whether a manager owns the field at some steps, or a list or map that has it.
func (m manager) owns(steps []string) bool {
	node := m.fields
	if len(node) == 0 || steps == nil {
		return false
	}
	for _, s := range steps {
		next, ok := below(node, s)
		if !ok {
			return false
		}
		if node = next; len(node) == 0 {
			return true
		}
	}
	return true
}

// below returns the fields below a step: a field or key (f:name), or an item of a list (k:{"name":"web"}, v:"text", i:0).
func below(node map[string]any, step string) (map[string]any, bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(step, "["), "]")
	if next, ok := node["f:"+name]; ok {
		fields, _ := next.(map[string]any)
		return fields, true
	}
	if step[0] != '[' {
		return nil, false
	}
	for _, key := range slices.Sorted(maps.Keys(node)) {
		if item := strings.HasPrefix(key, "k:"); item && hasValue(key[2:], name) || strings.HasPrefix(key, "v:") || key == "i:"+name {
			fields, _ := node[key].(map[string]any)
			return fields, true
		}
	}
	return nil, false
}

// hasValue reports whether a key of an item, in JSON, has a value.
func hasValue(keys, value string) bool {
	var of map[string]any
	_ = json.Unmarshal([]byte(keys), &of) // what is no key has no value
	for _, v := range of {
		if text, _ := json.Marshal(v); v == value || string(text) == value {
			return true
		}
	}
	return false
}
