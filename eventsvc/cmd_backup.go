package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/cli"
)

// backup writes a backup of the store.
type backup struct {
	File string `arg:"" help:"The file to write, which must not exist; - is standard output."`
	storeSettings
	printer
}

// Help is the rest of the command's help.
func (*backup) Help() string {
	return `Examples:

    eventsvc backup /backup/events.tar
    eventsvc backup - | gzip > events.tar.gz
    docker compose exec -T eventsvc eventsvc backup - > events.tar

The backup is the exact state of one revision, with all old versions. The service may run: it then makes the backup. If it
does not run, the command reads the files. Certificates, keys and settings are not part of the backup.` + exitCodesOfWriters
}

// Run writes the backup.
func (b *backup) Run(ctx context.Context, std stdio) error {
	if b.File == "-" && b.JSON {
		return cli.Usagef("--json would be mixed with the backup on the output: name a file")
	}
	result := written{File: b.File}
	if err := b.save(std, "backup", &result, nil, func(s admin.Store, open admin.Open) error {
		return s.Backup(ctx, open)
	}); err != nil || b.File == "-" {
		return err
	}
	return b.print(std.out, result, fmt.Sprintf("%s: revision %d, %s", b.File, result.Revision, mebibytes(result.Bytes)))
}

// written is the result of a backup or an export.
type written struct {
	File     string `json:"file,omitempty"`
	Revision uint64 `json:"revision"`
	Events   *int64 `json:"events,omitempty"` // in an export
	Bytes    int64  `json:"bytes"`
}

// save writes what work writes to the file of the result, and counts it there.
func (p *storeSettings) save(std stdio, what string, result *written, formats *codec.Codec, work func(admin.Store, admin.Open) error) error {
	s, closeStore, err := p.open(false, formats)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }() // the store was only read
	progress, done := std.progress(what)
	defer done()
	return write(result.File, std.out, func(w io.Writer) error {
		return work(s, func(revision uint64, total int64) io.Writer {
			result.Revision = revision
			lines := lineCounter{n: result.Events}
			return counter{w, func(p []byte) {
				result.Bytes += int64(len(p))
				if result.Events == nil {
					progress(result.Bytes, total)
					return
				}
				lines.count(p)
				progress(*result.Events, total)
			}}
		})
	})
}

// counter is a writer that counts what is written.
type counter struct {
	io.Writer
	count func(p []byte)
}

func (c counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.count(p[:n])
	return n, err
}

// restore creates a store from a backup.
type restore struct {
	File    string `arg:"" help:"The backup; - is standard input."`
	DataDir string `default:"var/eventsvc" placeholder:"DIR" help:"The data directory, which must hold no events yet."`
	printer
}

// Help is the rest of the command's help.
func (*restore) Help() string {
	return `Examples:

    eventsvc restore /backup/events.tar --data-dir /var/lib/eventsvc
    gunzip < events.tar.gz | eventsvc restore -

The whole backup is checked before the data directory is changed, so it gets everything or nothing. Then start the service.
It continues with revisions (resourceVersion) beyond all that were given out since the backup; the result says after which.
Clients that watch from, or read at, an older revision get 410 Expired and list again.` + exitCodesOfWriters
}

// Run creates the data directory.
func (r *restore) Run(ctx context.Context, std stdio) error {
	in, size, err := openInput(r.File)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	progress, done := std.progress("restore")
	defer done()
	read := int64(0)
	counted := io.TeeReader(in, counter{io.Discard, func(p []byte) {
		if read += int64(len(p)); size > 0 { // reading is a third of the work
			progress(read, 3*size)
		}
	}})
	checking := func(done, total int64) { progress(total+2*done, 3*total) }
	report, err := bolt.Restore(ctx, filepath.Join(r.DataDir, "store"), counted, checking)
	if err != nil {
		return fmt.Errorf("--data-dir %s: %w", r.DataDir, err)
	}
	done()
	return r.print(std.out, report, fmt.Sprintf("%s: revision %d with %d events, checked; continues after revision %d, older ones are compacted",
		r.DataDir, report.Revision, report.Live, report.CompactRevision))
}

// openInput opens a file, or standard input for "-", whose size is not known.
func openInput(path string) (in *os.File, size int64, err error) {
	if path == "-" {
		return os.Stdin, 0, nil
	}
	if in, err = os.Open(path); err != nil {
		return nil, 0, fmt.Errorf("%w: name a file that can be read, or - for the input", err)
	}
	info, err := in.Stat()
	if err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	return in, size, err
}
