package main

import (
	"context"
	"fmt"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/shared/cli"
)

// digestC tells whether two stores hold the same events.
type digestC struct {
	GroupDomain string `default:"k8s.io" help:"The API group is events.GROUP-DOMAIN."`
	storeSettings
	printer
}

// Help is the rest of the command's help.
func (*digestC) Help() string {
	return `Examples:

    eventsvc digest --data-dir /srv/copy

Prints the number of events and a checksum of all of them without their resourceVersion, which is each store's own. Two
stores with the same line hold the same events, whatever their engine.` + exitCodes
}

// Run reads all events.
func (d *digestC) Run(ctx context.Context, std stdio) error {
	formats, err := codec.New(d.GroupDomain)
	if err != nil {
		return cli.Usagef("--group-domain: %w", err)
	}
	s, closeStore, err := d.open(false, formats)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }() // the store was only read
	progress, done := std.progress("digest")
	defer done()
	result, err := admin.NewDigest(ctx, s, progress)
	if err != nil {
		return err
	}
	done()
	return d.print(std.out, result, fmt.Sprintf("%d events, digest %s", result.Events, result.Digest))
}
