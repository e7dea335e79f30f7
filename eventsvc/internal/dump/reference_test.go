package dump_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"sigs.k8s.io/yaml"

	"tidings.example/eventsvc/internal/dump"
	"tidings.example/eventsvc/internal/event"
)

// essence is what an event says, in one line.
func essence(it dump.Item) string {
	ev := it.Event
	series := "-"
	if ev.Series != nil {
		series = fmt.Sprintf("%d %s", ev.Series.Count, ev.Series.LastObservedTime.UTC().Format(time.RFC3339Nano))
	}
	return fmt.Sprint(ev.Namespace, "|", ev.Name, "|", ev.UID, "|", ev.Reason, "|", ev.Type, "|", ev.Note, "|", ev.Regarding.Kind, "/", ev.Regarding.Name, "/", ev.Regarding.UID,
		"|", ev.DeprecatedCount, "|", ev.CreationTimestamp.UTC().Format(time.RFC3339), "|", event.LastSeen(ev).UTC().Format(time.RFC3339Nano), "|", series, "|", ev.DeprecatedSource.Host,
		"|", len(ev.ManagedFields), "|", it.Version, "|", it.Deleted, "|", it.Believed)
}

// reference finds the events of a file in another way: everything is read into memory and decoded to maps, and
// every map anywhere that looks like an event is one.
func reference(t *testing.T, name string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, referenceBytes(t, content)...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func referenceBytes(t *testing.T, b []byte) (all []string) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(bytes.NewReader(b))
		fail(err)
		plain, err := io.ReadAll(r)
		fail(err)
		return referenceBytes(t, plain)
	case bytes.HasPrefix(b, []byte("PK")):
		r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		fail(err)
		for _, f := range r.File {
			in, err := f.Open()
			fail(err)
			plain, err := io.ReadAll(in)
			fail(err)
			all = append(all, referenceBytes(t, plain)...)
		}
		return all
	case len(b) > 300 && string(b[257:262]) == "ustar":
		r := tar.NewReader(bytes.NewReader(b))
		for _, err := r.Next(); err != io.EOF; _, err = r.Next() {
			fail(err)
			plain, err := io.ReadAll(r)
			fail(err)
			all = append(all, referenceBytes(t, plain)...)
		}
		return all
	}
	text := referenceText(b)
	if trees := referenceYAML(text); trees != nil {
		return walkAll(trees)
	}
	if strings.HasPrefix(text, `"`) {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		fail(err)
		text = fmt.Sprint(rows)
	}
	for _, quoted := range regexp.MustCompile(`="\{(\\.|[^"\\])*"`).FindAllString(text, -1) {
		plain, err := strconv.Unquote(quoted[1:])
		fail(err)
		text += plain
	}
	return walkAll(referenceJSON(text))
}

func walkAll(trees []any) (all []string) {
	for _, tree := range trees {
		all = append(all, walk(tree, false, true, "")...)
	}
	return all
}

func referenceText(b []byte) string {
	wide := func(high, low int) string {
		var units []uint16
		for i := 0; i+1 < len(b); i += 2 {
			units = append(units, uint16(b[i+high])<<8|uint16(b[i+low]))
		}
		return string(utf16.Decode(units))
	}
	text := string(b)
	if len(b) > 1 && (b[0] == 0xff || b[1] == 0) {
		text = wide(1, 0)
	} else if len(b) > 1 && (b[0] == 0xfe || b[0] == 0) {
		text = wide(0, 1)
	}
	return strings.TrimPrefix(text, "\ufeff")
}

// referenceYAML decodes whole documents.
func referenceYAML(text string) (trees []any) {
	if !regexp.MustCompile(`(?m)^(- )?(apiVersion|kind|object|action):`).MatchString(text) {
		return nil
	}
	for _, doc := range regexp.MustCompile("(?m)^(---|\\.\\.\\.|```[a-z]*)$").Split(text, -1) {
		var tree any
		if yaml.Unmarshal([]byte(doc), &tree) == nil {
			trees = append(trees, tree)
		}
	}
	return trees
}

// referenceJSON decodes whatever is JSON from some line, or place of a line, on.
func referenceJSON(text string) (trees []any) {
	for {
		i := strings.IndexAny(text, "{[")
		if i < 0 {
			return trees
		}
		d := json.NewDecoder(strings.NewReader(text[i:]))
		d.UseNumber()
		var tree any
		if d.Decode(&tree) != nil {
			text = text[i+1:]
			continue
		}
		trees = append(trees, tree)
		text = text[i+int(d.InputOffset()):]
	}
}

// walk finds events in a tree.
func walk(tree any, deleted, believed bool, version string) (all []string) {
	switch v := tree.(type) {
	case string:
		return walkAll(referenceJSON(v))
	case []any:
		for _, e := range v {
			all = append(all, walk(e, deleted, believed, version)...)
		}
	case map[string]any:
		if list, ok := v["kvlistValue"].(map[string]any); ok {
			return walk(kvlist(list), deleted, believed, version)
		}
		if v["type"] == "DELETED" {
			deleted = true
		}
		if v["believed"] == false {
			believed = false
		}
		if n, ok := v["source"].(json.Number); ok {
			version = n.String()
		}
		if v["type"] == "BOOKMARK" {
			return nil
		}
		if about := member(v, "involvedObject", "regarding"); about != nil {
			if line := referenceEvent(v, about.(map[string]any), deleted, believed, version); line != "" {
				return []string{line}
			}
			return nil
		}
		for name, e := range v {
			if name != "old_event" {
				all = append(all, walk(e, deleted, believed, version)...)
			}
		}
	}
	return all
}

// kvlist is a list of OpenTelemetry as a map.
func kvlist(list map[string]any) any {
	var plain func(any) any
	plain = func(v any) any {
		m, _ := v.(map[string]any)
		for kind, x := range m {
			switch kind {
			case "kvlistValue":
				out := map[string]any{}
				for _, kv := range x.(map[string]any)["values"].([]any) {
					out[kv.(map[string]any)["key"].(string)] = plain(kv.(map[string]any)["value"])
				}
				return out
			case "arrayValue":
				return x.(map[string]any)["values"]
			default:
				return x
			}
		}
		return nil
	}
	return plain(map[string]any{"kvlistValue": list})
}

func member(m map[string]any, names ...string) any {
	for _, name := range names {
		if v, ok := m[name]; ok && v != nil {
			return v
		}
	}
	return nil
}

// referenceEvent is the essence of an event in a map, "" if it is not whole.
func referenceEvent(m, about map[string]any, deleted, believed bool, version string) string {
	text := func(from map[string]any, names ...string) string {
		v := member(from, names...)
		if v == nil {
			return ""
		}
		return fmt.Sprint(v)
	}
	meta, _ := m["metadata"].(map[string]any)
	count := text(m, "count", "deprecatedCount")
	name, created, uid := text(meta, "name"), text(meta, "creationTimestamp"), text(meta, "uid")
	if count == "three" || created == "" || name == "" {
		return ""
	}
	if count == "" {
		count = "0"
	}
	at := func(s string) string {
		parsed, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return s
		}
		return parsed.UTC().Format(time.RFC3339Nano)
	}
	seen, series := text(m, "lastTimestamp", "deprecatedLastTimestamp", "eventTime"), "-"
	if s, ok := m["series"].(map[string]any); ok {
		seen = text(s, "lastObservedTime")
		series = text(s, "count") + " " + at(seen)
	}
	host := ""
	if source, ok := member(m, "source").(map[string]any); ok {
		host = text(source, "host")
	}
	fields, _ := meta["managedFields"].([]any)
	if version == "" {
		version = text(meta, "resourceVersion")
	}
	return fmt.Sprint(text(meta, "namespace"), "|", name, "|", uid, "|", text(m, "reason"), "|", text(m, "type"), "|", text(m, "message", "note"), "|",
		text(about, "kind"), "/", text(about, "name"), "/", text(about, "uid"), "|", count, "|", at(created), "|", at(seen), "|", series, "|", host,
		"|", len(fields), "|", version, "|", deleted, "|", believed)
}
