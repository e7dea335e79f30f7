package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/shared/cli"
)

// export writes events as JSON.
type export struct {
	File        string `arg:"" help:"The file to write, which must not exist; - is standard output."`
	After       uint64 `default:"0" placeholder:"REVISION" help:"Only events that were written after this revision, including deletions."`
	GroupDomain string `default:"k8s.io" help:"The API group is events.GROUP-DOMAIN."`
	place
	printer
}

// Help is the rest of the command's help.
func (*export) Help() string {
	return `Writes the frames of a watch: a line {"type":"ADDED","object":{...}} for each event, and at the end a BOOKMARK with the
revision. With --after and that revision, the next export has only the changes since, including MODIFIED and DELETED.

  eventsvc export events.ndjson
  eventsvc export - --after 5000 | eventsvc import - --data-dir /srv/copy
  eventsvc export - | jq -r 'select(.type == "ADDED") | .object.note'` + exitCodes
}

// Run writes the events.
func (e *export) Run(ctx context.Context, std stdio) error {
	if e.File == "-" && e.JSON {
		return cli.Usagef("--json would be mixed with the events on the output: name a file")
	}
	formats, err := codec.New(e.GroupDomain)
	if err != nil {
		return cli.Usagef("--group-domain: %w", err)
	}
	result := written{File: e.File, Events: new(int64)}
	if err := e.save(std, "export", &result, formats, func(s admin.Store, begin admin.Begin) error {
		return s.Export(ctx, e.After, begin)
	}); err != nil || e.File == "-" {
		return err
	}
	return e.print(std.out, result, fmt.Sprintf("%s: %d events, up to revision %d; the next part: --after %d", e.File, *result.Events, result.Revision, result.Revision))
}

// lineCounter counts the lines of an export that are not bookmarks.
type lineCounter struct {
	n    *int64
	head []byte // the beginning of the current line
}

var bookmarkHead = []byte(`{"type":"BOOKMARK"`)

func (c *lineCounter) count(p []byte) {
	for rest := p; len(rest) > 0; {
		line, more, ended := bytes.Cut(rest, []byte("\n"))
		c.head = append(c.head, line[:min(len(line), len(bookmarkHead)-len(c.head))]...)
		if rest = more; ended {
			if !bytes.Equal(c.head, bookmarkHead) {
				*c.n++
			}
			c.head = c.head[:0]
		}
	}
}

// importC stores events of an export.
type importC struct {
	File        string `arg:"" help:"The export; - is standard input."`
	GroupDomain string `default:"k8s.io" help:"The API group is events.GROUP-DOMAIN."`
	place
	printer
}

// Help is the rest of the command's help.
func (*importC) Help() string {
	return `Events keep their uid, their times and everything else, except the resourceVersion, which is this store's own. Their
retention begins now. If an event has a resourceVersion that this store has not given out, the store continues beyond all
that the other store may have given out; clients of either store then list again. Events that are stored already are not
changed, so an import can be repeated as a whole or in part.

  eventsvc import events.ndjson
  zcat events.ndjson.gz | eventsvc import - --json` + exitCodes
}

// importChunk is the size of one import in bytes, unless a line is longer.
const importChunk = 2 << 20

// Run stores the events.
func (i *importC) Run(ctx context.Context, std stdio) error {
	formats, err := codec.New(i.GroupDomain)
	if err != nil {
		return cli.Usagef("--group-domain: %w", err)
	}
	in, size, err := openInput(i.File)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	s, closeStore, err := i.open(true, formats)
	if err == nil {
		err = i.writable(s, closeStore)
	}
	if err != nil {
		return err
	}
	progress, done := std.progress("import")
	defer done()
	var sum admin.Imported
	read := int64(0)
	err = chunks(in, func(lines []byte) error {
		more, err := s.Import(ctx, lines)
		sum.Add(more)
		read += int64(len(lines))
		if size > 0 {
			progress(read, size)
		}
		return err
	})
	done()
	text := fmt.Sprintf("%d created, %d changed, %d deleted, %d unchanged, %d left out", sum.Created, sum.Changed, sum.Deleted, sum.Unchanged, sum.LeftOut)
	if sum.CompactRevision > 0 {
		text += fmt.Sprintf("; continues after revision %d, older ones are compacted", sum.CompactRevision)
	}
	if len(sum.Problems) > 0 {
		text += "\n" + strings.Join(sum.Problems, "\n")
	}
	if err = errors.Join(err, closeStore(), i.print(std.out, sum, text)); err != nil {
		return fmt.Errorf("%w; run it again when that is mended: what is imported already is left alone", err)
	}
	if sum.LeftOut > 0 {
		return errFindings
	}
	return nil
}

// chunks calls f with pieces of the input that end at a line end.
func chunks(in io.Reader, f func(lines []byte) error) error {
	var chunk []byte
	for r := bufio.NewReaderSize(in, 256<<10); ; {
		line, err := r.ReadSlice('\n')
		chunk = append(chunk, line...)
		whole := len(line) > 0 && line[len(line)-1] == '\n'
		end := errors.Is(err, io.EOF)
		switch {
		case err != nil && !end && !errors.Is(err, bufio.ErrBufferFull):
			return err
		case (whole && len(chunk) >= importChunk || end) && len(chunk) > 0:
			if err := f(chunk); err != nil {
				return err
			}
			chunk = chunk[:0]
		case len(chunk) > 2*importChunk+4<<20:
			return fmt.Errorf("a line is longer than any event: this is no export")
		}
		if end {
			return nil
		}
	}
}
