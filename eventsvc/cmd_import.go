package main

import (
	"context"
	"errors"
	"fmt"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/load"
	"tidings.example/shared/cli"
)

// importC stores the events of files.
type importC struct {
	File        []string `arg:"" help:"Files and folders that have events in any form; - is standard input."`
	GroupDomain string   `default:"k8s.io" help:"The API group is events.GROUP-DOMAIN."`
	reading
	Expect         *int64 `env:"-" placeholder:"N" help:"Store nothing unless the files have exactly so many events."`
	ApplyDeletions bool   `env:"-" help:"Delete what the files say was deleted. Default: its last version is stored, because a watch tells of expiry in the same way."`
	storeSettings
	printer
}

// Help is the rest of the command's help.
func (*importC) Help() string {
	return `Examples:

    eventsvc import events.json
    eventsvc import must-gather.tar.gz --cluster north
    kubectl get events -A -o json | eventsvc import - --cluster north
    eventsvc import later.ndjson --apply-deletions
    eventsvc query --deleted -n shop -o json > deleted.json && eventsvc import deleted.json --expect 13

Takes the events out of files of any of these kinds: exports of this service; lists, arrays, single events and lines of
kubectl in JSON or YAML, of core/v1, events.k8s.io/v1 and v1beta1; watches; lines of exporters, and records of log stores that
have an event anywhere within; all of these compressed by gzip, or within folders, tar and zip archives, such as support bundles.
It counts what is no event. For an event that cannot be stored, it prints the file, the line and the reason.

Events keep their uid, times, counts and everything else, except for the resourceVersion, which is this store's own. Their
retention begins now. Of two versions of an event the newer one stays, so that files can be imported in any order, and again.
An event whose name another event has is stored beside it, under a longer name.

If the store is empty, it continues beyond all revisions that the other store may have given out; clients of the other store
then list again.` + exitCodesOfWriters
}

// Run stores the events.
func (i *importC) Run(ctx context.Context, std stdio) error {
	formats, err := codec.New(i.GroupDomain)
	if err != nil {
		return cli.Usagef("--group-domain: %w", err)
	}
	o, done, err := i.options(std, "import", formats)
	if err != nil {
		return err
	}
	o.Deletions, o.Expect = i.ApplyDeletions, i.Expect
	defer done()
	s, closeStore, err := i.open(true, formats)
	if err == nil {
		err = i.writable(s, closeStore)
	}
	if err != nil {
		return err
	}
	sum, err := load.Files(ctx, s, i.File, o)
	done()
	interrupted, unexpected := ctx.Err() != nil, errors.Is(err, load.ErrUnexpected)
	if err = errors.Join(err, closeStore(), i.print(std.out, sum, sum.String())); interrupted {
		return errors.New("interrupted; run it again: what is imported already is left alone")
	} else if unexpected {
		return err
	} else if err != nil {
		return fmt.Errorf("%w; run it again when that is mended: what is imported already is left alone", err)
	}
	if sum.LeftOut > 0 || sum.Events == 0 && !sum.Current {
		return errFindings
	}
	return nil
}
