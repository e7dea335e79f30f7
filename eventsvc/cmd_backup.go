package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/terminal"
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
	result := admin.Written{File: b.File}
	if err := b.save(std, "backup", &result, nil, func(s admin.Store, open admin.Open) error {
		return s.Backup(ctx, open)
	}); err != nil || b.File == "-" {
		return err
	}
	return b.print(std.out, result, fmt.Sprintf("%s: revision %d, %s", b.File, result.Revision, terminal.MiB(result.Bytes)))
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
	counted := io.TeeReader(in, counter(func(n int) {
		if read += int64(n); size > 0 { // reading is a third of the work
			progress(read, 3*size)
		}
	}))
	checking := func(done, total int64) { progress(total+2*done, 3*total) }
	report, err := bolt.Restore(ctx, filepath.Join(r.DataDir, "store"), counted, checking)
	if err != nil {
		return fmt.Errorf("--data-dir %s: %w", r.DataDir, err)
	}
	done()
	return r.print(std.out, report, fmt.Sprintf("%s: revision %d with %d events, checked; continues after revision %d, older ones are compacted",
		r.DataDir, report.Revision, report.Live, report.CompactRevision))
}

// counter is told of how many bytes were written.
type counter func(n int)

func (c counter) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}
