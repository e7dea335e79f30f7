package dump_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
		"lz4":                        {[]byte("\x04\x22\x4d\x18xxxx"), 0, "lz4 -d"},
		"bzip2":                      {[]byte("BZh91AY&SYxxxx"), 0, "bzip2 -d"},
		"xz":                         {[]byte("\xfd7zXZ\x00xxxx"), 0, "xz -d"},
		"compress":                   {[]byte("\x1f\x9d\x90xxxx"), 0, "uncompress"},
		"lzma":                       {[]byte("\x5d\x00\x00\x80\x00" + strings.Repeat("\xff", 8) + "xxxx"), 0, "lzma -d"},
		"7z":                         {[]byte("7z\xbc\xaf\x27\x1cxxxx"), 0, "a 7z archive: unpack it"},
		"rar":                        {[]byte("Rar!\x1a\x07\x00xxxx"), 0, "a rar archive: unpack it"},
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
