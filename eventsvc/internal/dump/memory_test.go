//go:build !race

package dump_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/dump"
)

// endless is a file that is made while it is read.
type endless struct {
	head, item, tail string
	items            int
	rest             string
}

// Read fills b, as each read of a pipe costs more than what is made.
func (e *endless) Read(b []byte) (n int, _ error) {
	for n < len(b) {
		switch {
		case e.rest != "":
			copied := copy(b[n:], e.rest)
			n, e.rest = n+copied, e.rest[copied:]
		case e.head != "":
			e.rest, e.head = e.head, ""
		case e.items > 0:
			e.rest = e.item
			e.items--
		case e.tail != "":
			e.rest, e.tail = e.tail, ""
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
	return n, nil
}

// endlessFiles are files of whatever can be long, or a part of each.
func endlessFiles(part int) map[string]endless {
	item := strings.TrimSuffix(anEvent, "\n")
	const many = 100_000 // events
	yamlItem := "- kind: Event\n  apiVersion: v1\n  metadata: {name: e1, namespace: shop, uid: u1, creationTimestamp: \"2026-02-03T04:05:06Z\"}\n  involvedObject: {namespace: shop}\n"
	return map[string]endless{
		"a list on one line":        {head: `{"items":[`, item: item + ",", items: many / part, tail: item + "]}"},
		"lines":                     {item: anEvent, items: many / part},
		"large objects":             {head: "[", item: `{"kind":"Secret","data":"` + strings.Repeat("x", 3<<20) + `"},` + item + ",", items: 50 / part, tail: item + "]"},
		"an object without an end":  {head: `{"kind":"Secret","data":"`, item: strings.Repeat("y", 1<<20), items: 150 / part},
		"a line without an end":     {item: strings.Repeat("y", 1<<20), items: 150 / part},
		"brackets":                  {item: strings.Repeat("[", 1<<20) + "\n", items: 50 / part},
		"names":                     {head: `{`, item: `"a":{},`, items: (2 << 20) / part},
		"lines that break":          {item: `{"kind":"Event","a":{"b":[` + "\n", items: 200_000 / part},
		"YAML in items":             {head: "items:\n", item: yamlItem, items: 60_000 / part},
		"YAML without an end":       {head: "kind: Event\na: |\n", item: "  " + strings.Repeat("y", 1<<20) + "\n", items: 100 / part},
		"YAML of brackets":          {head: "kind: Event\na: ", item: strings.Repeat("[", 1<<20), items: 100 / part},
		"YAML of dashes":            {head: "kind: Event\n", item: strings.Repeat("- ", 1<<19) + "\n", items: 100 / part},
		"YAML of aliases and items": {head: "items:\n", item: "- kind: Event\n  a: &a [1,2,3]\n  b: [" + strings.Repeat("*a,", 10_000) + "]\n", items: 100 / part},
	}
}

// readEndless reads such a file.
func readEndless(t testing.TB, name string, in endless) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(w, &in); _ = w.Close() }()
	defer func() { _ = r.Close() }()
	report, err := dump.Read(t.Context(), []string{fmt.Sprintf("/dev/fd/%d", r.Fd())}, dump.Options{}, func([]dump.Item) error { return nil })
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	t.Logf("%s: %d events, %.200q", name, report.Events, report.Lines())
}

// TestLongFiles: whatever a long file is made of, it is read without an error.
func TestLongFiles(t *testing.T) {
	t.Parallel()
	for name, in := range endlessFiles(25) {
		readEndless(t, name, in)
	}
}

// BenchmarkMemory: no file takes much memory, however large it is and whatever it is made of.
func BenchmarkMemory(b *testing.B) {
	for name, in := range endlessFiles(1) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				peak := peakHeap(func() { readEndless(b, name, in) }) >> 20
				if b.ReportMetric(float64(peak), "MiB-peak"); peak > 128 {
					b.Errorf("%d MiB of memory", peak)
				}
			}
		})
	}
}

// peakHeap returns how much memory is in use while f runs, at most.
func peakHeap(f func()) uint64 {
	var peak uint64
	done := make(chan struct{})
	var watching sync.WaitGroup
	look := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
	}
	runtime.GC()
	watching.Go(func() {
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-tick.C:
				look()
			case <-done:
				tick.Stop()
				return
			}
		}
	})
	f()
	close(done)
	watching.Wait()
	return peak
}

// TestManyEntries: an archive of very many files is refused before they fill the memory.
func TestManyEntries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.zip")
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range 250_000 {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i), Method: zip.Store}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, report := readAll(t, dump.Options{}, file)
	if !strings.Contains(strings.Join(report.Lines(), ""), "its list of files has more than 8 MiB") {
		t.Error(report.Lines())
	}
	b.Reset()
	tw := tar.NewWriter(&b)
	for i := range 200_005 {
		if err := tw.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, report = readAll(t, dump.Options{}, file)
	if !strings.Contains(strings.Join(report.Lines(), ""), "there are more than 200000 files") {
		t.Error(report.Lines())
	}
}
