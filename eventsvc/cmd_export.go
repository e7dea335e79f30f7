package main

import (
	"context"
	"fmt"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/shared/cli"
)

// export writes events as JSON.
type export struct {
	File        string `arg:"" help:"The file to write, which must not exist; - is standard output."`
	After       uint64 `default:"0" placeholder:"REVISION" help:"Only events that were written after this revision, including deletions."`
	GroupDomain string `default:"k8s.io" help:"The API group is events.GROUP-DOMAIN."`
	storeSettings
	printer
}

// Help is the rest of the command's help.
func (*export) Help() string {
	return `Examples:

    eventsvc export events.ndjson
    eventsvc export - --after 5000 | eventsvc import - --apply-deletions --data-dir /srv/copy
    eventsvc export - | jq -r 'select(.type == "ADDED") | .object.note'

Writes the frames of a watch: a line {"type":"ADDED","object":{...}} for each event, and at the end a BOOKMARK with the
revision. With --after and that revision, the next export has only the changes since, including MODIFIED and DELETED.` + exitCodes
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
	result := admin.Written{File: e.File, Events: new(int64)}
	if err := e.save(std, "export", &result, formats, func(s admin.Store, open admin.Open) error {
		return s.Export(ctx, e.After, open)
	}); err != nil || e.File == "-" {
		return err
	}
	return e.print(std.out, result, fmt.Sprintf("%s: %d events, up to revision %d; the next part: --after %d", e.File, *result.Events, result.Revision, result.Revision))
}
