//go:build linux

package powercut

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/shared/porttest"
)

const module = "../../../eventsvc"

// An edit replaces text in a source file of eventsvc.
type edit struct{ file, old, new string }

// smallFiles has a log file sealed at 256 KiB instead of 64 MiB: what happens to files
// in hours happens in seconds.
var smallFiles = edit{"internal/store/bolt/db.go", "cmp.Or(o.SegmentBytes, usage.SegmentBytes(o.MaxBytes))", "cmp.Or(o.SegmentBytes, 256<<10)"}

// newMachine returns where a binary runs, at addresses that are its own.
func newMachine(t *testing.T, binary string, keys *issuer) machine {
	t.Helper()
	return machine{binary: binary, issuer: keys, api: porttest.Addr(t), admin: porttest.Addr(t)}
}

// build builds eventsvc from sources in which some text is replaced, and leaves
// the sources as they are.
func build(t *testing.T, edits ...edit) (binary string) {
	t.Helper()
	dir := t.TempDir()
	texts := map[string]string{}
	for _, e := range edits {
		path, err := filepath.Abs(filepath.Join(module, e.file))
		if err != nil {
			t.Fatal(err)
		}
		if _, edited := texts[path]; !edited {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(b)
		}
		if !strings.Contains(texts[path], e.old) {
			t.Fatalf("%s does not contain %q any more: change the edit with it", e.file, e.old)
		}
		texts[path] = strings.ReplaceAll(texts[path], e.old, e.new)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range texts {
		overlay.Replace[path] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(overlay.Replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "eventsvc")
	cmd := exec.Command("go", "build", "-overlay", list, "-o", binary, ".")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}
