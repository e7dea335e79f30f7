package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

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
	var sum digest
	result := struct {
		Events   int64  `json:"events"`
		Revision uint64 `json:"revision"`
		Digest   string `json:"digest"`
	}{}
	if err := s.Export(ctx, 0, func(revision uint64, total int64) io.Writer {
		result.Revision = revision
		sum.tell = func(n int64) { progress(n, total) }
		return &sum
	}); err != nil {
		return err
	}
	done()
	result.Events, result.Digest = sum.events, hex.EncodeToString(sum.sum[:])
	return d.print(std.out, result, fmt.Sprintf("%d events, digest %s", result.Events, result.Digest))
}

// A digest is the exclusive or of the SHA-256 of each event in an export, so their order does not matter.
type digest struct {
	sum    [sha256.Size]byte
	events int64
	rest   []byte // a line that has not ended
	tell   func(events int64)
}

// Write implements [io.Writer].
func (d *digest) Write(p []byte) (int, error) {
	d.rest = append(d.rest, p...)
	for {
		line, rest, ended := bytes.Cut(d.rest, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		if err := d.add(line); err != nil {
			return 0, err
		}
		d.rest = rest
	}
}

// add adds a line of an export.
func (d *digest) add(line []byte) error {
	if bytes.HasPrefix(line, bookmarkHead) {
		return nil
	}
	var frame struct {
		Object map[string]json.RawMessage `json:"object"`
	}
	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(line, &frame); err != nil {
		return err
	}
	if err := json.Unmarshal(frame.Object["metadata"], &metadata); err != nil {
		return err
	}
	delete(metadata, "resourceVersion")
	var err error
	if frame.Object["metadata"], err = json.Marshal(metadata); err != nil {
		return err
	}
	event, err := json.Marshal(frame.Object) // with sorted keys
	if err != nil {
		return err
	}
	for i, b := range sha256.Sum256(event) {
		d.sum[i] ^= b
	}
	d.events++
	d.tell(d.events)
	return nil
}
