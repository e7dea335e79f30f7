package dump

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
)

// Position is where something stands in a dump.
type Position struct {
	File  string // with the file within it, if it is an archive
	Line  int    // from 1; 0: not known
	Index int    // of an item in its list, from 1; 0: it is in none
}

// String is the position as messages have it.
func (p Position) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ": line %d", p.Line)
	}
	if p.Index > 0 {
		fmt.Fprintf(&b, ", item %d", p.Index)
	}
	return b.String()
}

// Item is an event of a dump.
type Item struct {
	Position
	Event    *eventsv1.Event // with name, namespace, uid and creationTimestamp
	Deleted  bool            // a watch says that it was deleted then
	Version  uint64          // its resourceVersion where it comes from; 0: not known
	Believed bool            // if it reports a gap of a mirror, that can be believed
}

// Options say how files are read.
type Options struct {
	Labels map[string]string // given to every event
	// Relabel gives these labels also to events of another cluster than theirs. Otherwise such events are reported.
	Relabel bool
	Time    time.Time // of events without any; zero: they are reported
	// Decode reads an event that has no unknown fields and says its version, faster than this package does. May be nil.
	Decode   func(v event.View, text []byte) (*eventsv1.Event, error)
	Stdin    *os.File                // what "-" is
	Progress func(done, total int64) // bytes of all files; total is 0 if it is not known. May be nil
}

// Read reads files and folders, and calls visit with the events in their order, some at a
// time. It goes on after what it cannot read, which is in the report. An error is that of
// visit, or of ctx.
func Read(ctx context.Context, files []string, o Options, visit func([]Item) error) (*Report, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &reader{ctx: ctx, Options: o, report: newReport(), batches: make(chan []found, 1)}
	decoded := make(chan []Item)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(r.batches)
		r.files(files)
		r.send()
	})
	reading.Go(func() {
		defer close(decoded)
		for batch := range r.batches {
			select {
			case decoded <- r.decode(batch):
			case <-ctx.Done(): // the reader notices, too
			}
		}
	})
	defer reading.Wait()
	defer stop()
	for items := range decoded {
		r.report.events(items)
		if len(items) == 0 {
			continue
		}
		if err := visit(items); err != nil {
			return r.report, err
		}
	}
	return r.report, ctx.Err()
}

// A batch has so many events, or so many bytes.
const (
	batchEvents = 1024
	batchBytes  = 2 << 20
)

// reader reads the files of one call.
type reader struct {
	Options
	ctx     context.Context
	report  *Report
	batches chan []found

	batch []found
	bytes int
	done  int64 // bytes of earlier files
	total int64
	count int // of files and entries of archives
	found int // of events

	scratch scratch
}

// send passes on what was found.
func (r *reader) send() {
	if len(r.batch) == 0 {
		return
	}
	select {
	case r.batches <- r.batch:
	case <-r.ctx.Done():
	}
	r.batch, r.bytes = nil, 0
}

// add keeps an event that was found.
func (r *reader) add(f found) {
	r.found++
	r.batch = append(r.batch, f)
	if r.bytes += len(f.raw); len(r.batch) >= batchEvents || r.bytes >= batchBytes {
		r.send()
	}
}

// decode decodes a batch on all processors, and reports what it leaves out.
func (r *reader) decode(batch []found) []Item {
	type outcome struct {
		Item
		notes []string
		err   error
	}
	outcomes := make([]outcome, len(batch))
	var workers sync.WaitGroup
	n := min(runtime.GOMAXPROCS(0), len(batch))
	for w := range n {
		workers.Go(func() {
			for i := w; i < len(batch); i += n {
				o := &outcomes[i]
				o.Item, o.notes, o.err = batch[i].item(&r.Options)
			}
		})
	}
	workers.Wait()
	items := make([]Item, 0, len(batch))
	for i := range outcomes {
		o := &outcomes[i]
		for _, text := range o.notes {
			r.report.note(batch[i].Position, text)
		}
		if o.err != nil {
			r.report.problem(batch[i].Position, batch[i].name(), o.err)
			continue
		}
		items = append(items, o.Item)
	}
	return items
}
