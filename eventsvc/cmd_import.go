package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/dump"
	"tidings.example/eventsvc/internal/event"
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

// imported is the result of an import.
type imported struct {
	admin.Imported
	Events   int64      `json:"events"` // that were found
	From     *time.Time `json:"from,omitempty"`
	To       *time.Time `json:"to,omitempty"`
	LeftOut  int64      `json:"leftOut"`
	Messages []string   `json:"messages,omitempty"`

	current bool // an export says that there is nothing newer
}

// Run stores the events.
func (i *importC) Run(ctx context.Context, std stdio) error {
	formats, err := codec.New(i.GroupDomain)
	if err != nil {
		return cli.Usagef("--group-domain: %w", err)
	}
	load, err := i.loader(std, "import", formats)
	if err != nil {
		return err
	}
	load.deletions, load.expect = i.ApplyDeletions, i.Expect
	defer load.close()
	s, closeStore, err := i.open(true, formats)
	if err == nil {
		err = i.writable(s, closeStore)
	}
	if err != nil {
		return err
	}
	sum, err := load.files(ctx, s, i.File)
	interrupted, unexpected := ctx.Err() != nil, errors.Is(err, errUnexpected)
	if err = errors.Join(err, closeStore(), i.print(std.out, sum, sum.String())); interrupted {
		return errors.New("interrupted; run it again: what is imported already is left alone")
	} else if unexpected {
		return err
	} else if err != nil {
		return fmt.Errorf("%w; run it again when that is mended: what is imported already is left alone", err)
	}
	if sum.LeftOut > 0 || sum.Events == 0 && !sum.current {
		return errFindings
	}
	return nil
}

// String says what was done.
func (s imported) String() string {
	text := fmt.Sprintf("%d created, %d changed, %d deleted, %d unchanged, %d left out", s.Created, s.Changed, s.Deleted, s.Unchanged, s.LeftOut)
	if s.CompactRevision > 0 {
		text += fmt.Sprintf("; continues after revision %d, older ones are compacted", s.CompactRevision)
	}
	return strings.Join(append([]string{text}, s.Messages...), "\n")
}

// loader stores the events of files.
type loader struct {
	dump.Options
	strict, deletions bool
	expect            *int64 // events; nil: any number
	done              func()
	spooled           *os.File      // standard input, if it is read twice
	signs             *clusterSigns // nil: labels tell clusters apart

	sum   imported
	under *storing // the call of Import that is under way; nil: there is none
}

// loader returns what stores the events of files, with what is done called so in its progress.
func (r *reading) loader(std stdio, what string, formats *codec.Codec) (*loader, error) {
	labels, err := r.labels()
	if err != nil {
		return nil, err
	}
	decode := func(v event.View, text []byte) (*eventsv1.Event, error) {
		ev, _, err := formats.Decoder.DecodeEvent(v, "application/json", text, metav1.FieldValidationStrict)
		return ev, err
	}
	tell, done := tellFiles(std, what)
	return &loader{Options: dump.Options{Labels: labels, Relabel: r.Relabel, Time: r.Time, Decode: decode, Progress: tell, Stdin: os.Stdin}, strict: r.Strict, done: done}, nil
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

func (l *loader) close() {
	l.done()
	if l.spooled != nil {
		_ = l.spooled.Close()
	}
}

// files stores the events of files. The sum is valid with an error, too.
func (l *loader) files(ctx context.Context, s admin.Store, files []string) (imported, error) {
	defer boundMemory()()
	var err error
	if l.strict || l.expect != nil {
		files, err = l.sound(ctx, files)
	}
	if len(l.Labels) == 0 {
		l.signs = newClusterSigns(files)
		l.signs.known(ctx, s)
	}
	var report *dump.Report
	if err == nil {
		report, err = dump.Read(ctx, files, l.Options, func(items []dump.Item) error { return l.store(ctx, s, items) })
		err = errors.Join(err, l.settle())
	}
	l.done()
	if report != nil {
		l.sum.Events, l.sum.current = report.Events, report.Current
		l.sum.LeftOut += report.Failed
		if report.Events > 0 {
			l.sum.From, l.sum.To = &report.From, &report.To
		}
		l.sum.Messages = append(l.sum.Messages, report.Lines()...)
	}
	if l.sum.Events == 0 && l.sum.LeftOut == 0 && !l.sum.current && err == nil {
		l.sum.Messages = append(l.sum.Messages, "there are no events: ask for the output of kubectl get events -A -o json")
	}
	if l.sum.Beside > 0 {
		l.sum.Messages = append(l.sum.Messages, fmt.Sprintf(
			"%d have a name that another event has, and are stored beside it under a longer one: if they come from another cluster, import it with --cluster NAME", l.sum.Beside))
	}
	if l.signs != nil {
		if text := l.signs.warning(); text != "" {
			l.sum.Messages = append(l.sum.Messages, text)
		}
	}
	return l.sum, err
}

// maxMemory is what the garbage collector works for while files are read, which takes no more than 128 MiB with what it does
// not know of.
const maxMemory = 104 << 20

// rareGC is GOGC while the heap is below that limit. It is high because nearly everything that is read is garbage soon.
const rareGC = 400

// boundMemory sets that limit, unless GOMEMLIMIT sets another one or it is lower already, and returns what takes it back.
func boundMemory() (restore func()) {
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(rareGC)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(min(limit, maxMemory))
	}
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// storing is a call of Import.
type storing struct {
	items []dump.Item
	names map[string]bool // of the events, with their namespaces
	done  chan struct{}   // closed when the next two are valid
	sum   admin.Imported
	err   error
}

// store begins to store some events. While their commit waits for the disk, the next ones are read and prepared. They wait for the
// commit if they have an event of the same name, so that the changes of one event stay in order, and as long as no event is known to be
// stored, because Import treats an empty store in its own way.
func (l *loader) store(ctx context.Context, s admin.Store, items []dump.Item) error {
	if l.signs != nil {
		for _, it := range items {
			l.signs.add(it.File, it.Event.Labels, &it.Event.Regarding)
		}
	}
	next := &storing{items: items, names: make(map[string]bool, len(items)), done: make(chan struct{})}
	wait := l.sum.Created+l.sum.Changed+l.sum.Unchanged == 0
	for i := range items {
		name := items[i].Event.Namespace + "/" + items[i].Event.Name
		next.names[name] = true
		wait = wait || l.under != nil && l.under.names[name]
	}
	if wait {
		if err := l.settle(); err != nil {
			return err
		}
	}
	go func() {
		defer close(next.done)
		whole, stop := finishing(ctx)
		defer stop()
		next.sum, next.err = s.Import(whole, admin.Arrivals(items, l.deletions, l.Relabel))
	}()
	err := l.settle()
	l.under = next
	return err
}

// finishTime is how long a call of Import may go on when its command is interrupted: it stores a second's work, and is counted.
const finishTime = 10 * time.Second

// finishing returns a context that ends somewhat later than another one.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })
	return whole, func() { stop(); cancel() }
}

// settle waits for the call of Import that is under way, and counts what it has stored.
func (l *loader) settle() error {
	c := l.under
	if c == nil {
		return nil
	}
	l.under = nil
	<-c.done
	l.sum.Add(c.sum)
	for _, p := range c.sum.Problems {
		it := c.items[p.Arrival]
		l.sum.LeftOut++
		if len(l.sum.Messages) < maxMessages {
			l.sum.Messages = append(l.sum.Messages, fmt.Sprintf("%s: %s/%s: %s", it.Position, it.Event.Namespace, it.Event.Name, p.Reason))
		}
	}
	return c.err
}

// maxMessages is how many events are named that the store refuses.
const maxMessages = 20

// errUnexpected says that --expect has another number.
var errUnexpected = errors.New("none is stored; look at them, and give their number")

// sound returns the files that have nothing wrong in them, if that is asked for, and counts their events. It reads standard input into a file without a name, so that
// it can be read again.
func (l *loader) sound(ctx context.Context, files []string) (good []string, err error) {
	found := int64(0) // events of the good files
	for _, name := range files {
		if name == "-" && l.spooled == nil {
			if err := l.spool(); err != nil {
				return nil, err
			}
		}
		report, err := dump.Read(ctx, []string{name}, l.Options, func([]dump.Item) error { return nil })
		if err != nil {
			return nil, err
		}
		if name == "-" {
			if _, err := l.spooled.Seek(0, io.SeekStart); err != nil {
				return nil, err
			}
		}
		if !l.strict || report.Failed == 0 && !report.Noted() {
			good, found = append(good, name), found+report.Events
			continue
		}
		l.sum.LeftOut += max(1, report.Events+report.Failed)
		l.sum.Messages = append(l.sum.Messages, report.Lines()...)
		l.sum.Messages = append(l.sum.Messages, name+": --strict: nothing of it is stored")
	}
	if l.expect != nil && found != *l.expect {
		return nil, fmt.Errorf("--expect %d: the files have %d events: %w", *l.expect, found, errUnexpected)
	}
	return good, nil
}

func (l *loader) spool() error {
	f, err := os.CreateTemp("", "eventsvc-*")
	if err != nil {
		return err
	}
	l.spooled = f
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if _, err := io.Copy(f, l.Stdin); err != nil {
		return err
	}
	l.Stdin = f
	_, err = f.Seek(0, io.SeekStart)
	return err
}
