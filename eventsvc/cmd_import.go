package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/dump"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/load"
	"tidings.example/eventsvc/internal/terminal"
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

// reading has the settings that say how files are read.
type reading struct {
	Cluster string            `env:"-" placeholder:"NAME" help:"The cluster that the events come from, as their label; never mix two clusters without it."`
	Relabel bool              `env:"-" help:"With --cluster: make events of another cluster ones of this. Otherwise these are named, and left as they are."`
	Label   map[string]string `env:"-" short:"l" placeholder:"NAME=VALUE;..." help:"Labels that the events get."`
	Time    time.Time         `env:"-" placeholder:"TIME" help:"The time of events that have none, in RFC 3339."`
	Strict  bool              `env:"-" help:"Store nothing of a file in which anything is wrong or would not be kept."`
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

// clusterLabel is the label that people select by. Queries use [event.ClusterLabel]. A mirror sets both.
const clusterLabel = "cluster"

// labels returns the labels that events get.
func (r *reading) labels() (map[string]string, error) {
	all := maps.Clone(r.Label)
	if r.Cluster != "" {
		if all == nil {
			all = map[string]string{}
		}
		all[event.ClusterLabel], all[clusterLabel] = r.Cluster, r.Cluster
		if errs := validation.IsValidLabelValue(r.Cluster); len(errs) > 0 {
			return nil, cli.Usagef("--cluster %q cannot be the value of a label: %s", r.Cluster, strings.Join(errs, "; "))
		}
	}
	if errs := metav1validation.ValidateLabels(all, field.NewPath("--label")); len(errs) > 0 {
		return nil, cli.Usagef("%w", errs.ToAggregate())
	}
	return all, nil
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

// options returns how files are read, with their progress shown as that of a command, and what clears the progress.
func (r *reading) options(std stdio, command string, formats *codec.Codec) (o load.Options, done func(), err error) {
	labels, err := r.labels()
	if err != nil {
		return o, nil, err
	}
	decode := func(v event.View, text []byte) (*eventsv1.Event, error) {
		ev, _, err := formats.Decoder.DecodeEvent(v, "application/json", text, metav1.FieldValidationStrict)
		return ev, err
	}
	tell, done := tellFiles(std, command)
	o.Options = dump.Options{Labels: labels, Relabel: r.Relabel, Time: r.Time, Decode: decode, Progress: tell, Stdin: os.Stdin}
	o.Strict = r.Strict
	return o, done, nil
}

// tellFiles shows the progress on a line of the terminal or, elsewhere, as a line for each 10 seconds.
func tellFiles(std stdio, what string) (tell func(done, total int64), end func()) {
	bar, next := terminal.NewProgress(std.err), time.Now().Add(tellEvery)
	return func(done, total int64) {
		text := fmt.Sprintf("%s: %s read", what, mebibytes(done))
		if total > 0 {
			text = fmt.Sprintf("%s: %3d %%", what, 100*done/max(total, done, 1))
		}
		bar.Show("%s", text)
		if now := time.Now(); terminal.Width(std.err) == 0 && now.After(next) {
			next = now.Add(tellEvery)
			_, _ = fmt.Fprintln(std.err, text)
		}
	}, bar.Clear
}

const tellEvery = 10 * time.Second
