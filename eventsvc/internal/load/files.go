// Package load stores the events of files in a store: the work of the commands import and open.
//
// [Files] reads files of any form with package dump, and passes their events on to [admin.Store.Import], which decides
// by uid, name and age what becomes of each. files.go has the reading in order, clusters.go the warning about files of
// two clusters. A function of this package is not safe for concurrent use.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/dump"
)

// Options say how files are read, and what becomes of their events.
type Options struct {
	dump.Options
	Strict    bool   // nothing of a file is stored if anything in it is wrong
	Deletions bool   // what files say was deleted is deleted; otherwise its last version is stored
	Expect    *int64 // nothing is stored unless the files have so many events; nil: any number
}

// Result is what was found and stored.
type Result struct {
	admin.Imported
	Events   int64      `json:"events"` // found in the files
	From     *time.Time `json:"from,omitempty"`
	To       *time.Time `json:"to,omitempty"`
	LeftOut  int64      `json:"leftOut"`
	Messages []string   `json:"messages,omitempty"`

	Current bool `json:"-"` // an export says that there is nothing newer
}

// String says what was done.
func (s Result) String() string {
	text := fmt.Sprintf("%d created, %d changed, %d deleted, %d unchanged, %d left out", s.Created, s.Changed, s.Deleted, s.Unchanged, s.LeftOut)
	if s.CompactRevision > 0 {
		text += fmt.Sprintf("; continues after revision %d, older ones are compacted", s.CompactRevision)
	}
	return strings.Join(append([]string{text}, s.Messages...), "\n")
}

// loader stores the events of files.
type loader struct {
	Options
	spooled *os.File      // standard input, if it is read twice
	signs   *clusterSigns // nil: labels tell clusters apart

	sum   Result
	under *storing // the call of Import that is under way; nil: there is none
}

// Files stores the events of files; "-" is standard input. The result is valid with an error, too. With [ErrUnexpected]
// nothing was stored, because the files have another number of events than was expected.
func Files(ctx context.Context, s admin.Store, files []string, o Options) (Result, error) {
	l := &loader{Options: o}
	defer l.close()
	return l.files(ctx, s, files)
}

func (l *loader) close() {
	if l.spooled != nil {
		_ = l.spooled.Close()
	}
}

// files stores the events of files.
func (l *loader) files(ctx context.Context, s admin.Store, files []string) (Result, error) {
	defer boundMemory()()
	var err error
	if l.Strict || l.Expect != nil {
		files, err = l.sound(ctx, files)
	}
	if len(l.Labels) == 0 {
		l.signs = newClusterSigns(files)
		l.signs.known(ctx, s)
	}
	var report *dump.Report
	if err == nil {
		report, err = dump.Read(ctx, files, l.Options.Options, func(items []dump.Item) error { return l.store(ctx, s, items) })
		err = errors.Join(err, l.settle())
	}
	if report != nil {
		l.sum.Events, l.sum.Current = report.Events, report.Current
		l.sum.LeftOut += report.Failed
		if report.Events > 0 {
			l.sum.From, l.sum.To = &report.From, &report.To
		}
		l.sum.Messages = append(l.sum.Messages, report.Lines()...)
	}
	if l.sum.Events == 0 && l.sum.LeftOut == 0 && !l.sum.Current && err == nil {
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

// maxMemory is what the garbage collector works for while files are read, which takes no more than 256 MiB with what it
// does not know of. With half of it, a third of the processor time would go to the collector: a live heap of 30 MiB and
// what it keeps beside that leave it no room.
const maxMemory = 224 << 20

// rareGC is GOGC while the heap is below that limit. It is high because nearly everything that is read is garbage soon.
const rareGC = 400

// boundMemory sets that limit, unless GOMEMLIMIT sets another one or it is lower already, and returns what takes it
// back.
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

// store begins to store some events. While their commit waits for the disk, the next ones are read and prepared. They
// wait for the commit if they have an event of the same name, so that the changes of one event stay in order, and as
// long as no event is known to be stored, because Import treats an empty store in its own way.
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
		next.sum, next.err = s.Import(whole, admin.Arrivals(items, l.Deletions, l.Relabel))
	}()
	err := l.settle()
	l.under = next
	return err
}

// finishTime is how long a call of Import may go on when its command is interrupted: it stores a second's work, and is
// counted.
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

// ErrUnexpected says that the files have another number of events than was expected.
var ErrUnexpected = errors.New("none is stored; look at them, and give their number")

// sound returns the files that have nothing wrong in them, if that is asked for, and counts their events. It reads
// standard input into a file without a name, so that it can be read again.
func (l *loader) sound(ctx context.Context, files []string) (good []string, err error) {
	found := int64(0) // events of the good files
	for _, name := range files {
		if name == "-" && l.spooled == nil {
			if err := l.spool(); err != nil {
				return nil, err
			}
		}
		report, err := dump.Read(ctx, []string{name}, l.Options.Options, func([]dump.Item) error { return nil })
		if err != nil {
			return nil, err
		}
		if name == "-" {
			if _, err := l.spooled.Seek(0, io.SeekStart); err != nil {
				return nil, err
			}
		}
		if !l.Strict || report.Failed == 0 && !report.Noted() {
			good, found = append(good, name), found+report.Events
			continue
		}
		l.sum.LeftOut += max(1, report.Events+report.Failed)
		l.sum.Messages = append(l.sum.Messages, report.Lines()...)
		l.sum.Messages = append(l.sum.Messages, name+": --strict: nothing of it is stored")
	}
	if l.Expect != nil && found != *l.Expect {
		return nil, fmt.Errorf("--expect %d: the files have %d events: %w", *l.Expect, found, ErrUnexpected)
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
