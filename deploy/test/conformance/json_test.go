package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// object is JSON that a test looks into.
type object map[string]any

func parse(t *testing.T, b []byte) object {
	t.Helper()
	var o object
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return o
}

// at returns what is at a path such as "metadata.name"; numbers index arrays.
func (o object) at(path string) any {
	var v any = map[string]any(o)
	for _, step := range strings.Split(path, ".") {
		switch here := v.(type) {
		case map[string]any:
			v = here[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(here) {
				return nil
			}
			v = here[i]
		default:
			return nil
		}
	}
	return v
}

// text is the string at a path, empty if there is none.
func (o object) text(path string) string {
	s, _ := o.at(path).(string)
	return s
}

// version is the object's resourceVersion as a number.
func (o object) version(t *testing.T) uint64 {
	t.Helper()
	return parseVersion(t, o.text("metadata.resourceVersion"))
}

// parseVersion reads a resourceVersion by the rules that client-go's
// comparison of versions has: decimal, greater than 0, no leading zero.
func parseVersion(t *testing.T, text string) uint64 {
	t.Helper()
	rv, err := strconv.ParseUint(text, 10, 64)
	if err != nil || rv == 0 || text[0] == '0' {
		t.Fatalf("resourceVersion %q is no positive decimal number without leading zeros", text)
	}
	return rv
}

// names are the names of the items of a list.
func (o object) names() []string {
	items, _ := o["items"].([]any)
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = object(item.(map[string]any)).text("metadata.name")
	}
	return names
}

// equalJSON compares with JSON text.
func equalJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v: %s", err, want)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// merge applies a JSON merge patch (RFC 7386) to JSON text.
func merge(base, patch string) string {
	var b, p any
	if err := json.Unmarshal([]byte(base), &b); err != nil {
		panic(fmt.Sprintf("%v: %s", err, base))
	}
	if err := json.Unmarshal([]byte(patch), &p); err != nil {
		panic(fmt.Sprintf("%v: %s", err, patch))
	}
	out, err := json.Marshal(mergeValue(b, p))
	if err != nil {
		panic(err)
	}
	return string(out)
}

func mergeValue(base, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	b, ok := base.(map[string]any)
	if !ok {
		b = map[string]any{}
	}
	for key, value := range p {
		if value == nil {
			delete(b, key)
			continue
		}
		b[key] = mergeValue(b[key], value)
	}
	return b
}

// memberNames are the names of the members of a JSON object, in order.
func memberNames(t *testing.T, body []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var names []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		names = append(names, fmt.Sprint(name))
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	return names
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
