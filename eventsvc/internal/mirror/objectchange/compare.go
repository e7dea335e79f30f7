package objectchange

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Change is a field that differs between two states of an object.
type Change struct {
	Path          string
	Before, After string // "": the field was not there
	// Perhaps is set where it is not known whether the value differs: it is hidden, was last seen by another process,
	// and its manager has written since.
	Perhaps bool
}

// Compare returns the fields that differ, ordered by path.
func Compare(before, after *Seen) (changes []Change) {
	for path, is := range after.Fields {
		c := Change{Path: path, Before: before.Fields[path], After: is}
		c.Perhaps = is == hidden && c.Before == hidden && before.Hashes[path] == 0 && after.wrote(path).After(before.Wrote)
		if is != c.Before || c.Perhaps || before.Hashes[path] != 0 && before.Hashes[path] != after.Hashes[path] {
			changes = append(changes, c)
		}
	}
	for path, was := range before.Fields {
		if after.Fields[path] == "" {
			changes = append(changes, Change{Path: path, Before: was})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// Series is an event about changes of an object to which further changes of the same fields are added for a minute.
type Series struct {
	Version string               `json:"version"` // of the first change
	First   time.Time            `json:"first"`
	Last    time.Time            `json:"last"`
	Count   int32                `json:"count"`
	Author  string               `json:"author"`         // of the last change
	Fields  map[string][2]string `json:"fields"`         // by path: before the first change and after the last; "": not there
	Late    bool                 `json:"late,omitempty"` // the event does not tell all of it
}

// Covers reports whether all changes are of fields that the series is about.
func (s *Series) Covers(changes []Change) bool {
	return !slices.ContainsFunc(changes, func(c Change) bool {
		_, of := s.Fields[c.Path]
		return !of
	})
}

// Extended returns the series with further changes, which count as one.
func (s Series) Extended(changes []Change, author string, at time.Time) Series {
	fields := maps.Clone(s.Fields)
	if fields == nil {
		fields = map[string][2]string{}
	}
	for _, c := range changes {
		before := c.Before
		if was, of := fields[c.Path]; of {
			before = was[0]
		}
		fields[c.Path] = [2]string{before, c.After}
	}
	s.Fields, s.Author, s.Count = fields, author, s.Count+1
	if at.After(s.Last) {
		s.Last = at
	}
	return s
}

// Changes returns what the series changed, ordered by path. A field that is as it was is among them, unless it is not
// there.
func (s *Series) Changes() (changes []Change) {
	for _, path := range slices.Sorted(maps.Keys(s.Fields)) {
		if f := s.Fields[path]; f[0]+f[1] != "" {
			changes = append(changes, Change{Path: path, Before: f[0], After: f[1]})
		}
	}
	return changes
}

// manager is an entry of managedFields.
type manager struct {
	name   string
	wrote  time.Time // zero: unknown, as it is of those who scale
	fields map[string]any
}

// managersOf returns the entries that are not about the status, the one that wrote last first.
func managersOf(metadata map[string]any) (managers []manager) {
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		name, _ := entry["manager"].(string)
		if name == "" || entry["subresource"] == "status" {
			continue
		}
		wrote, _ := time.Parse(time.RFC3339, fmt.Sprint(entry["time"])) // zero where there is none
		fields, _ := entry["fieldsV1"].(map[string]any)
		managers = append(managers, manager{printable(name), wrote.UTC(), fields})
	}
	slices.SortStableFunc(managers, func(a, b manager) int { return b.wrote.Compare(a.wrote) })
	return managers
}

// wrote returns when the manager of a field last wrote; zero: unknown.
func (s *Seen) wrote(path string) time.Time {
	for _, m := range s.managers {
		if m.owns(path) {
			return m.wrote
		}
	}
	return time.Time{}
}

// Author returns who made changes, and when: the manager that owns one of the changed fields and wrote last, and since
// the object was seen before. A field that was removed has no owner: then any manager that wrote since. The name is
// empty if nobody can be named, and the time zero.
func Author(before, after *Seen, changes []Change) (name string, at time.Time) {
	var since time.Time
	if before != nil {
		since = before.Wrote
	}
	for _, m := range after.managers {
		if (m.wrote.IsZero() || !m.wrote.Before(since)) && slices.ContainsFunc(changes, func(c Change) bool { return c.After != "" && m.owns(c.Path) }) {
			return m.name, m.wrote
		}
	}
	removed := slices.ContainsFunc(changes, func(c Change) bool { return c.After == "" })
	if len(after.managers) > 0 && (before == nil || removed && after.managers[0].wrote.After(since)) {
		return after.managers[0].name, after.managers[0].wrote
	}
	return "", time.Time{}
}

// steps matches the steps of a path.
var steps = regexp.MustCompile(`\[[^\]]*\]|[^.\[]+`)

// owns reports whether a manager owns a field, or a list or map that has it.
func (m *manager) owns(path string) bool {
	node := m.fields
	for _, step := range steps.FindAllString(path, -1) {
		next, ok := child(node, strings.Trim(step, "[]"))
		if !ok || len(next) == 0 {
			return ok
		}
		node = next
	}
	return true
}

// child returns the fields below a field (f:name) or an item of a list (k:{"name":"web"}, v:"text", i:0).
func child(node map[string]any, name string) (map[string]any, bool) {
	if next, ok := node["f:"+name]; ok {
		fields, _ := next.(map[string]any)
		return fields, true
	}
	for _, key := range slices.Sorted(maps.Keys(node)) {
		if keys, item := strings.CutPrefix(key, "k:"); item && hasValue(keys, name) || strings.HasPrefix(key, "v:") || key == "i:"+name {
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
		if fmt.Sprint(v) == value {
			return true
		}
	}
	return false
}
