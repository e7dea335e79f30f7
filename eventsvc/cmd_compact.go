package main

import (
	"context"
	"errors"
	"fmt"

	"tidings.example/eventsvc/internal/terminal"
)

// compact frees disk space.
type compact struct {
	Compress bool `help:"Compress all files of the log now."`
	storeSettings
	printer
}

// Help is the rest of the command's help.
func (*compact) Help() string {
	return `Examples:

    eventsvc compact
    eventsvc compact --compress
    eventsvc compact --json | jq .bytesAfter

A running service first removes events whose retention has passed. If no service runs, only what was removed before is
freed. It needs free space for the largest segment (64 MiB) and for another copy of the index; what has none within --max-bytes
stays as it is. Events that are compressed take about a twelfth of the room. A running service compresses by itself: see --compress-after.` + exitCodesOfWriters
}

// Run compacts the store.
func (c *compact) Run(ctx context.Context, std stdio) error {
	s, closeStore, err := c.open(false, nil)
	if err != nil {
		return err
	}
	progress, done := std.progress("compact")
	defer done()
	result, err := s.Compact(ctx, c.Compress, progress)
	if err = errors.Join(err, closeStore()); err != nil {
		return err
	}
	done()
	return c.print(std.out, result, fmt.Sprintf("%s, before %s: %d events", terminal.MiB(result.After), terminal.MiB(result.Before), result.Events))
}
