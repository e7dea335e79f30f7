package dump

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
)

// The bounds of a file that was packed, against those that were made to fill a disk or memory.
const (
	freeBytes  = 256 << 20 // any file may expand to so much
	maxRatio   = 200       // bytes that each byte beyond may expand to
	maxBytes   = 64 << 30  // no file may expand to more
	maxEntries = 200_000   // files in folders and archives
	maxIndex   = 8 << 20   // bytes of the list of files at the end of a zip file
)

var errBomb = fmt.Errorf("it expands to more than %d times its size, as no dump does: unpack it yourself if you trust it", maxRatio)

// errEntries ends the reading.
var errEntries = fmt.Errorf("there are more than %d files: name the ones that have events", maxEntries)

// packed counts what a file has and what it expands to.
type packed struct{ in, out int64 }

// expand counts what is read of an expanded form.
type expand struct {
	r io.Reader
	p *packed
}

func (e expand) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	if e.p.out += int64(n); e.p.out > maxBytes || e.p.out > freeBytes && e.p.out/maxRatio > e.p.in {
		return 0, errBomb
	}
	return n, err
}

// files reads the files of the command line.
func (r *reader) files(names []string) {
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			r.total += info.Size()
		} else {
			r.total = 0
			break
		}
	}
	for _, name := range names {
		if r.ctx.Err() != nil {
			return
		}
		before := r.found
		if err := r.named(name); err != nil && r.ctx.Err() == nil {
			r.report.problem(Position{File: name}, "", err)
		} else if r.found == before && len(names) > 1 && r.ctx.Err() == nil {
			r.report.empty(name)
		}
	}
}

// named reads a file or a folder that somebody named.
func (r *reader) named(name string) error {
	if name == "-" {
		return r.opened(r.Stdin, "standard input", false)
	}
	info, err := os.Stat(name)
	if err != nil {
		return plainError(err)
	}
	if info.IsDir() {
		return r.folder(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return plainError(err)
	}
	defer func() { _ = f.Close() }()
	return r.opened(f, name, false)
}

// plainError leaves out the name, which the place has.
func plainError(err error) error {
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return wrong.Err
	}
	return err
}

// folder reads the files of a folder. Links and special files are not followed.
func (r *reader) folder(root string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case r.ctx.Err() != nil:
			return r.ctx.Err()
		case err != nil:
			r.report.problem(Position{File: name}, "", plainError(err))
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			r.report.file("links and special files are not followed")
			return nil
		}
		if r.count++; r.count > maxEntries {
			return errEntries
		}
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // it may have become something else
		if err != nil {
			r.report.problem(Position{File: name}, "", plainError(err))
			return nil
		}
		defer func() { _ = f.Close() }()
		if err := r.opened(f, name, true); err != nil && r.ctx.Err() == nil {
			r.report.problem(Position{File: name}, "", err)
		}
		return nil
	})
}

// told counts the bytes of a file that was named, for the progress.
type told struct {
	io.Reader
	r    *reader
	p    *packed
	next int64
}

func (t *told) Read(b []byte) (int, error) {
	if err := t.r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.Reader.Read(b)
	t.p.in += int64(n)
	if t.r.done += int64(n); t.r.Progress != nil && t.r.done >= t.next {
		t.next = t.r.done + 1<<20
		t.r.Progress(t.r.done, t.r.total)
	}
	return n, err
}

// opened reads a file that is open.
func (r *reader) opened(f *os.File, name string, inside bool) error {
	p := new(packed)
	head := make([]byte, 4)
	if n, err := f.ReadAt(head, 0); err == nil && n == len(head) && bytes.HasPrefix(head, []byte("PK")) {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return r.zip(f, info.Size(), name)
		}
	}
	content := newPeeker(&told{Reader: f, r: r, p: p})
	if bytes.HasPrefix(content.head, []byte(zipMagic)) { // from a pipe: its list of files is at its end
		return r.spool(content, name)
	}
	return r.content(content, name, p, level{inside: inside})
}

const (
	zipMagic  = "PK\x03\x04"
	maxSpool  = 4 << 30 // bytes of a zip file from a pipe
	spoolName = "eventsvc-*.zip"
)

// spool reads a zip file from a pipe: its copy has no name, so that nothing is left of it.
func (r *reader) spool(content io.Reader, name string) error {
	f, err := os.CreateTemp("", spoolName)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, maxSpool))
	if err != nil {
		return err
	}
	if n == maxSpool {
		return fmt.Errorf("it has more than %d GiB: write it to a file, and name that", maxSpool>>30)
	}
	return r.zip(f, n, name)
}

// level says what a file is in.
type level struct {
	inside  bool // a folder or an archive
	archive bool // an archive
	gzipped bool
}

// peekBytes is how much of a file is looked at to decide what it is.
const peekBytes = 16 << 10

// peeker is a reader that can look ahead.
type peeker struct {
	head []byte
	r    io.Reader
	err  error
}

func newPeeker(r io.Reader) *peeker {
	p := &peeker{r: r, head: make([]byte, peekBytes)}
	n, err := io.ReadFull(r, p.head)
	p.head = p.head[:n]
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		p.err = err
	}
	return p
}

func (p *peeker) Read(b []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.r.Read(b)
}

// foreign are forms that are named and not read, by their first bytes.
var foreign = []struct{ magic, what string }{
	{"PK\x05\x06", "an empty zip file"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it first (zstd -d)"},
	{"BZh", "compressed with bzip2: decompress it first (bzip2 -d)"},
	{"\xfd7zXZ\x00", "compressed with xz: decompress it first (xz -d)"},
	{"\x04\x22\x4d\x18", "compressed with lz4: decompress it first (lz4 -d)"},
	{"\x1f\x9d", "compressed with compress: decompress it first (uncompress)"},
	{"\x5d\x00\x00", "compressed with lzma: decompress it first (lzma -d)"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it, and name the folder"},
	{"Rar!", "a rar archive: unpack it, and name the folder"},
	{"k8s\x00", "an object in protobuf: ask for JSON"},
}

// content reads a file by what is in it.
func (r *reader) content(p *peeker, name string, size *packed, in level) error {
	head := p.head
	switch {
	case len(head) == 0:
		if p.err != nil && !errors.Is(p.err, io.EOF) {
			return plainError(p.err)
		}
		return r.nothing(in, "it is empty")
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		if in.gzipped {
			return errors.New("compressed twice: decompress it first")
		}
		zip, err := gzip.NewReader(p)
		if err != nil {
			return brokenOff(err)
		}
		in.gzipped = true
		return r.content(newPeeker(expand{zip, size}), name, size, in)
	case isTar(head), bytes.HasPrefix(head, []byte(zipMagic)):
		if in.archive {
			return errors.New("an archive within an archive is not opened: unpack the outer one, and name this file")
		}
		if head[0] == zipMagic[0] && !isTar(head) {
			return errors.New("a zip file that was compressed again: decompress it first")
		}
		return r.tar(p, name, size)
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return errors.New(f.what)
		}
	}
	return r.readText(p, name, in)
}

// nothing is what a file without events is: an error if it was named.
func (r *reader) nothing(in level, what string) error {
	if !in.inside {
		return errors.New(what)
	}
	r.report.file(what)
	return nil
}

// brokenOff says that a packed file is not whole.
func brokenOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the file breaks off here: what is before is read; ask for the whole file")
	}
	return err
}

// isTar reports whether a file begins with the header of a tar archive, whose checksum is right (POSIX.1-1988 ustar).
func isTar(head []byte) bool {
	if len(head) < 512 {
		return false
	}
	sum, field := 0, strings.Trim(string(head[148:156]), " \x00")
	for i, b := range head[:512] {
		if i >= 148 && i < 156 {
			b = ' '
		}
		sum += int(b)
	}
	var want int
	n, err := fmt.Sscanf(field, "%o", &want)
	return err == nil && n == 1 && sum == want && head[0] != 0
}

// entryName returns an error about the name of a file in an archive that leads out of it or is meant for a terminal. No
// file is ever written under its name, but whoever made it does not mean well.
func entryName(name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the name %.80q leads out of the archive: the file is not read", name)
	}
	if strings.ContainsFunc(name, unicode.IsControl) || len(name) > 4096 {
		return fmt.Errorf("the name %.80q has control characters, or is too long: the file is not read", name)
	}
	return nil
}

// tar reads the files of a tar archive.
func (r *reader) tar(in io.Reader, name string, size *packed) error {
	archive := tar.NewReader(in)
	for r.ctx.Err() == nil {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return brokenOff(err)
		}
		if r.count++; r.count > maxEntries {
			return errEntries
		}
		at := name + ": " + h.Name
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeGNUSparse:
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		default:
			r.report.file("links and special files are not followed")
			continue
		}
		if err := entryName(h.Name); err != nil {
			r.report.problem(Position{File: name}, "", err)
			continue
		}
		err = r.content(newPeeker(expand{archive, size}), at, size, level{inside: true, archive: true})
		if err != nil && r.ctx.Err() == nil {
			if errors.Is(err, errBomb) {
				return err
			}
			r.report.problem(Position{File: at}, "", err)
		}
	}
	return nil
}

// index bounds what is read before the files of a zip archive are: their names.
type index struct {
	io.ReaderAt
	left int64 // negative: no bound
}

func (x *index) ReadAt(b []byte, at int64) (int, error) {
	if x.left >= 0 {
		if x.left -= int64(len(b)); x.left < 0 {
			x.left = 0
			return 0, fmt.Errorf("its list of files has more than %d MiB: unpack it, and name the folder", maxIndex>>20)
		}
	}
	return x.ReaderAt.ReadAt(b, at)
}

// zip reads the files of a zip archive.
func (r *reader) zip(f io.ReaderAt, bytes int64, name string) error {
	x := &index{f, maxIndex}
	archive, err := zip.NewReader(x, bytes)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	x.left = -1
	size := &packed{in: bytes}
	for _, file := range archive.File {
		if r.ctx.Err() != nil {
			return nil
		}
		if r.count++; r.count > maxEntries {
			return errEntries
		}
		if mode := file.Mode(); mode.IsDir() {
			continue
		} else if !mode.IsRegular() {
			r.report.file("links and special files are not followed")
			continue
		}
		if err := r.zipped(file, name, size); err != nil && r.ctx.Err() == nil {
			if errors.Is(err, errBomb) {
				return err
			}
			r.report.problem(Position{File: fmt.Sprintf("%s: %.200s", name, file.Name)}, "", err)
		}
	}
	r.done += bytes
	return nil
}

// zipped reads a file of a zip archive.
func (r *reader) zipped(file *zip.File, name string, size *packed) error {
	if err := entryName(file.Name); err != nil {
		return err
	}
	const encrypted = 1
	if file.Flags&encrypted != 0 {
		return errors.New("it is encrypted: unpack it with its password, and name the file")
	}
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return r.content(newPeeker(expand{content, size}), name+": "+file.Name, size, level{inside: true, archive: true})
}
