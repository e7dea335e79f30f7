package main

import (
	"context"
	"errors"
	"fmt"

	"tidings.example/eventsvc/internal/store/maintenance"
)

// compact frees disk space.
type compact struct {
	Compress   bool `xor:"form" help:"Compress all files of the log but the newest now."`
	Decompress bool `xor:"form" help:"Decompress all files of the log, for a release that does not know the compressed format."`
	place
	printer
}

// form returns what becomes of the files.
func (c *compact) form() maintenance.Form {
	switch {
	case c.Compress:
		return maintenance.Compressed
	case c.Decompress:
		return maintenance.Uncompressed
	}
	return maintenance.AsItIs
}

// Help is the rest of the command's help.
func (*compact) Help() string {
	return `A running service first removes events whose retention has passed. If no service runs, only what was removed before is
freed. It needs free space for the largest segment (64 MiB) and for another copy of the index. Events that are compressed take
about a ninth of the room; --decompress needs that room again. A running service with --compress-after compresses again.

  eventsvc compact
  eventsvc compact --compress
  eventsvc compact --json | jq .bytesAfter` + exitCodes
}

// Run compacts the store.
func (c *compact) Run(ctx context.Context, std stdio) error {
	s, closeStore, err := c.open(false, nil)
	if err != nil {
		return err
	}
	progress, done := std.progress("compact")
	defer done()
	result, err := s.Compact(ctx, c.form(), progress)
	if err = errors.Join(err, closeStore()); err != nil {
		return err
	}
	done()
	return c.print(std.out, result, fmt.Sprintf("%s, before %s: %d events", mebibytes(result.After), mebibytes(result.Before), result.Events))
}
