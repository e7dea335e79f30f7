package dump_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/dump"
)

const anEvent = `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e1","namespace":"shop","uid":"u1"},"involvedObject":{"namespace":"shop"},"firstTimestamp":"2026-02-03T04:05:06Z"}` + "\n"

// entry is a file of an archive.
type entry struct {
	name, content string
	kind          byte
	link          string
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: 0o600, Size: int64(len(e.content))}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipOf(t testing.TB, change func(*zip.FileHeader), entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.link != "" {
			h.SetMode(0o777 | os.ModeSymlink)
		}
		if change != nil {
			change(h)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestHostileArchives: what is wrong with an archive is named, what is sound in it is read, and nothing is written.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	event := entry{name: "a/events.json", content: anEvent}
	inner := tarOf(t, event)
	whole := gzipOf(t, tarOf(t, event, entry{name: "b", content: strings.Repeat(anEvent, 100)}))
	bomb := gzipOf(t, bytes.Repeat([]byte("\n"), 300<<20))
	encrypted := zipOf(t, nil, entry{name: "secret.json", content: anEvent}, event)
	binary.LittleEndian.PutUint16(encrypted[bytes.LastIndex(encrypted, []byte("PK\x01\x02"))-46-len("secret.json")+8:], 1)
	for name, tt := range map[string]struct {
		file   []byte
		events int64
		says   string
	}{
		"a path that leads out, tar": {tarOf(t, entry{name: "../../etc/x", content: anEvent}, event), 1, `the name "../../etc/x" leads out of the archive`},
		"an absolute path, tar":      {tarOf(t, entry{name: "/etc/x", content: anEvent}, event), 1, `the name "/etc/x" leads out of the archive`},
		"a path that leads out, zip": {zipOf(t, nil, entry{name: "../x", content: anEvent}, event), 1, `the name "../x" leads out of the archive`},
		"an escape in a name":        {tarOf(t, entry{name: "a\x1b[2Jb", content: anEvent}, event), 1, `"a\x1b[2Jb" has control characters`},
		"links and devices":          {tarOf(t, entry{name: "l", kind: tar.TypeSymlink, link: "/etc/passwd"}, entry{name: "h", kind: tar.TypeLink, link: "l"}, entry{name: "c", kind: tar.TypeChar}, entry{name: "f", kind: tar.TypeFifo}, event), 1, "4 files: links and special files are not followed"},
		"a link in a zip":            {zipOf(t, nil, entry{name: "l", link: "x", content: "/etc/passwd"}, event), 1, "1 file: links and special files are not followed"},
		"an archive in an archive":   {tarOf(t, entry{name: "inner.tar", content: string(inner)}, entry{name: "inner.tgz", content: string(gzipOf(t, inner))}, entry{name: "inner.zip", content: string(zipOf(t, nil, event))}, event), 1, "inner.tgz: an archive within an archive is not opened"},
		"compressed twice":           {gzipOf(t, gzipOf(t, []byte(anEvent))), 0, "compressed twice"},
		"a zip that is compressed":   {gzipOf(t, zipOf(t, nil, event)), 0, "a zip file that was compressed again"},
		"a compressed file in a tar": {tarOf(t, entry{name: "x", content: string(gzipOf(t, []byte(anEvent)))}), 1, ""},
		"a bomb":                     {bomb, 0, "it expands to more than 200 times its size"},
		"a bomb in a tar":            {tarOf(t, event, entry{name: "b", content: string(bomb)}), 1, "it expands to more than 200 times its size"},
		"an encrypted file":          {encrypted, 1, "secret.json: it is encrypted"},
		"a tar that breaks off":      {whole[:len(whole)-40], -1, "breaks off"},
		"a gzip that breaks off":     {gzipOf(t, []byte(strings.Repeat(anEvent, 3000)))[:900], -1, "breaks off"},
		"a zip that breaks off":      {zipOf(t, nil, event)[:80], 0, "zip"},
		"zstd":                       {[]byte("\x28\xb5\x2f\xfdxxxx"), 0, "zstd -d"},
		"protobuf":                   {[]byte("k8s\x00xxxx"), 0, "an object in protobuf"},
		"a program":                  {[]byte("\x7fELF\x02\x01\x01\x00\x00"), 0, "no text"},
		"nothing":                    {nil, 0, "it is empty"},
		"a file of zeros":            {tarOf(t, event, entry{name: "z", content: strings.Repeat("\x00", 1<<20)}), 1, "no text"},
	} {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, tt.file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, report := readAll(t, dump.Options{}, file)
		lines := strings.Join(report.Lines(), "\n")
		if report.Events != tt.events && (tt.events >= 0 || report.Events == 0) || !strings.Contains(lines, tt.says) || tt.says == "" && lines != "" {
			t.Errorf("%s: %d events: %s", name, report.Events, lines)
		}
		if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
			t.Errorf("%s: it has written %v", name, left)
		}
	}
}

// TestFolderLinks: links, pipes and unreadable files of a folder are named or counted, and wait for nobody.
func TestFolderLinks(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside.json")
	for name, text := range map[string]string{filepath.Join(dir, "a.json"): anEvent, outside: anEvent} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{os.Symlink(outside, filepath.Join(dir, "link")), os.Symlink(dir, filepath.Join(dir, "round")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, report := readAll(t, dump.Options{}, dir)
	if lines := strings.Join(report.Lines(), "\n"); report.Events != 1 || lines != "3 files: links and special files are not followed" {
		t.Errorf("%d events: %s", report.Events, lines)
	}
	_, report = readAll(t, dump.Options{}, filepath.Join(dir, "none"))
	if report.Failed != 1 || !strings.Contains(report.Problems[0], "no such file") {
		t.Errorf("%q", report.Problems)
	}
}

// endless is a file that is made while it is read.
type endless struct {
	head, item, tail string
	items            int
	rest             string
}

func (e *endless) Read(b []byte) (int, error) {
	for e.rest == "" {
		switch {
		case e.head != "":
			e.rest, e.head = e.head, ""
		case e.items > 0:
			e.rest = e.item
			e.items--
		case e.tail != "":
			e.rest, e.tail = e.tail, ""
		default:
			return 0, io.EOF
		}
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestMemory: no file takes much memory, however large it is and whatever it is made of.
func TestMemory(t *testing.T) {
	item := strings.TrimSuffix(anEvent, "\n")
	const many = 100_000 // events
	yamlItem := "- kind: Event\n  apiVersion: v1\n  metadata: {name: e1, namespace: shop, uid: u1, creationTimestamp: \"2026-02-03T04:05:06Z\"}\n  involvedObject: {namespace: shop}\n"
	for name, in := range map[string]*endless{
		"a list on one line":        {head: `{"items":[`, item: item + ",", items: many, tail: item + "]}"},
		"lines":                     {item: anEvent, items: many},
		"large objects":             {head: "[", item: `{"kind":"Secret","data":"` + strings.Repeat("x", 3<<20) + `"},` + item + ",", items: 50, tail: item + "]"},
		"an object without an end":  {head: `{"kind":"Secret","data":"`, item: strings.Repeat("y", 1<<20), items: 200},
		"a line without an end":     {item: strings.Repeat("y", 1<<20), items: 200},
		"brackets":                  {item: strings.Repeat("[", 1<<20) + "\n", items: 50},
		"names":                     {head: `{`, item: `"a":{},`, items: 2 << 20},
		"lines that break":          {item: `{"kind":"Event","a":{"b":[` + "\n", items: 200_000},
		"YAML in items":             {head: "items:\n", item: yamlItem, items: 60_000},
		"YAML without an end":       {head: "kind: Event\na: |\n", item: "  " + strings.Repeat("y", 1<<20) + "\n", items: 100},
		"YAML of brackets":          {head: "kind: Event\na: ", item: strings.Repeat("[", 1<<20), items: 100},
		"YAML of dashes":            {head: "kind: Event\n", item: strings.Repeat("- ", 1<<19) + "\n", items: 100},
		"YAML of aliases and items": {head: "items:\n", item: "- kind: Event\n  a: &a [1,2,3]\n  b: [" + strings.Repeat("*a,", 10_000) + "]\n", items: 100},
	} {
		peak := peakHeap(func() {
			r, w, err := os.Pipe()
			if err != nil {
				t.Error(err)
				return
			}
			go func() { _, _ = io.Copy(w, in); _ = w.Close() }()
			defer func() { _ = r.Close() }()
			report, err := dump.Read(t.Context(), []string{fmt.Sprintf("/dev/fd/%d", r.Fd())}, dump.Options{}, func([]dump.Item) error { return nil })
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			t.Logf("%s: %d events, %.200q", name, report.Events, report.Lines())
		})
		t.Logf("%s: %d MiB", name, peak>>20)
		if peak > 128<<20 {
			t.Errorf("%s: %d MiB of memory", name, peak>>20)
		}
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
	b = bytes.Buffer{}
	_, report := readAll(t, dump.Options{}, file)
	if !strings.Contains(strings.Join(report.Lines(), ""), "its list of files has more than 8 MiB") {
		t.Error(report.Lines())
	}
	r, pw := io.Pipe()
	go func() {
		w := tar.NewWriter(pw)
		for i := range 200_005 {
			_ = w.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg})
		}
		_ = pw.CloseWithError(w.Close())
	}()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, r); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	_, report = readAll(t, dump.Options{}, file)
	if !strings.Contains(strings.Join(report.Lines(), ""), "there are more than 200000 files") {
		t.Error(report.Lines())
	}
}

// FuzzRead: no file makes the reader fail, read for ever or pass on an event that no store takes.
func FuzzRead(f *testing.F) {
	entries, err := os.ReadDir("testdata/dumps")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		if content, err := os.ReadFile(filepath.Join("testdata/dumps", e.Name())); err == nil {
			f.Add(content)
		}
	}
	f.Add(gzipOf(f, tarOf(f, entry{name: "../x", content: anEvent}, entry{name: "l", kind: tar.TypeSymlink, link: "/"})))
	f.Add(zipOf(f, nil, entry{name: "x", content: anEvent}))
	f.Fuzz(func(t *testing.T, content []byte) {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		items, report := readAll(t, dump.Options{}, file)
		for _, it := range items {
			if it.Event.Name == "" || it.Event.Namespace == "" || it.Event.UID == "" || it.Event.CreationTimestamp.IsZero() {
				t.Errorf("passed on %v", it.Event)
			}
		}
		if report.Events != int64(len(items)) {
			t.Errorf("%d events, %d reported", len(items), report.Events)
		}
		again, _ := readAll(t, dump.Options{}, file)
		if len(again) != len(items) {
			t.Errorf("%d events, then %d", len(items), len(again))
		}
	})
}
