package bolt

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// A checker fills a report.
type checker struct {
	seglog.IndexedLog
	report      *store.Report
	progress    store.Progress
	done, total int64            // bytes that were read, and about how many there are to be read
	namespaces  map[string]int64 // events that exist in each
	led         index.Revisions  // of records to which the index leads from their keys
	met         index.Revisions  // of these, those to which the index was found to lead
}

// Check reads everything that the store holds at the newest revision, and reports what is wrong:
// the pages of every file, the checksum of every record, that log and index agree in both
// directions, that an index made again from the log would be the same, that the columns of
// each segment are those of its records, and that the account of live records is right. Writes,
// expiry and compaction may go on meanwhile: each read transaction is short. The error is for a
// check that could not be made. Progress counts bytes.
func (db *DB) Check(ctx context.Context, progress store.Progress) (*store.Report, error) {
	account := db.usage
	s := account.Stats()
	r := &store.Report{Revision: s.Revision}
	c := &checker{IndexedLog: seglog.IndexedLog{Index: db.index, Log: db.log}, report: r, progress: progress, namespaces: map[string]int64{}, led: index.Revisions{}, met: index.Revisions{}, total: 6*(s.LiveBytes+s.HistoryBytes+s.DeadBytes) + s.LiveBytes}
	for _, check := range []func(context.Context) error{c.pages, c.log, c.successors, c.columns, c.index, c.deletions} {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	if s := account.Stats(); s.Revision == r.Revision && (s.Events != r.Live || s.LiveBytes != r.LiveBytes) {
		r.Problem("the store counts %d events of %d bytes, but there are %d of %d", s.Events, s.LiveBytes, r.Live, r.LiveBytes)
	}
	if counted := account.Namespaces.All(); account.Stats().Revision == r.Revision && !maps.Equal(counted, c.namespaces) {
		r.Problem("the store counts other numbers of events in its namespaces than there are; a restart counts them again")
	}
	progress.Tell(c.total, c.total)
	return r, nil
}

// read counts bytes that were read.
func (c *checker) read(n int64) {
	c.done += n
	c.progress.Tell(min(c.done, c.total), c.total)
}

// pages goes over the pages of each file. (bbolt's own check does that in
// a goroutine where a damaged page would end the process.)
func (c *checker) pages(ctx context.Context) error {
	if err := c.Index.Check(); err != nil {
		c.report.Problem("%s: %v", c.Index.Path(), err)
	}
	ss := c.Log.Segments()
	return c.segments(ctx, ss, func(s *seglog.Segment, _ func(string, ...any)) error { return s.Check(s == ss.Head()) })
}

// successors goes over which versions follow which.
func (c *checker) successors(ctx context.Context) error {
	return c.segments(ctx, c.Log.Segments(), seglog.CheckSuccessors)
}

// columns goes over the columns of segments.
func (c *checker) columns(ctx context.Context) error {
	return c.segments(ctx, c.Log.Segments(), seglog.CheckColumns)
}

// segments calls check with each segment that is still there. The error of check is a problem too.
func (c *checker) segments(ctx context.Context, ss seglog.Segments, check func(s *seglog.Segment, problem func(format string, args ...any)) error) error {
	for _, s := range ss {
		held, ok := c.Log.Acquire()
		if !ok {
			return store.ErrClosed
		}
		if slices.Contains(held.Segments, s) { // not compacted meanwhile
			if err := check(s, func(format string, args ...any) {
				c.report.Problem("%s: "+format, slices.Concat([]any{s.Path}, args)...)
			}); err != nil {
				c.report.Problem("%s: %v", s.Path, err)
			}
		}
		held.Release()
		c.read(s.Bytes())
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// inChunks calls some, which reads one chunk, until it reports that there are no more or
// until ctx ends. An error of it is a problem at a place, and ends the walk.
func (c *checker) inChunks(ctx context.Context, place func() string, some func() (more bool, err error)) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if more, err = some(); err != nil {
			c.report.Problem("%s: %v", place(), err)
			more = false
		}
		c.read(0)
	}
	return nil
}

// log goes over the log: every record whole, and known to the index.
func (c *checker) log(ctx context.Context) error {
	at := uint64(0)
	return c.inChunks(ctx, func() string { return fmt.Sprint("log behind revision ", at) }, func() (more bool, err error) {
		err = c.View(func(v index.View, r *seglog.Reader) error {
			n := 0
			return r.Scan(at, c.report.Revision, func(e seglog.Entry) bool {
				at = e.Revision
				c.record(r, v, &e)
				n++
				more = n == seglog.Chunk
				return !more
			}, nil)
		})
		return more, err
	})
}

func (c *checker) record(r *seglog.Reader, v index.View, e *seglog.Entry) {
	c.report.Records++
	c.report.Bytes += e.Size()
	c.done += e.Size()
	compactRevision := c.Log.CompactRevision()
	p, ok, err := v.Newest(string(e.Key))
	switch {
	case err != nil:
		c.report.Problem("revision %d: %v", e.Revision, err)
	case !ok && e.Revision > compactRevision:
		c.report.Problem("revision %d: the index does not know %s", e.Revision, e.Key)
	case ok && p.Revision() < e.Revision:
		c.report.Problem("revision %d: the index has %s at revision %d", e.Revision, e.Key, p.Revision())
	case ok && p.Revision() == e.Revision && p.Deletion() != (e.Kind == seglog.Deleted):
		c.report.Problem("revision %d: log and index disagree about whether %s exists", e.Revision, e.Key)
	case ok && p == index.NewPointer(e.Revision, false):
		c.led.Add(e.Revision)
		c.report.LiveBytes += e.Size()
	}
	if e.Revision > compactRevision {
		c.previous(r, e)
	}
}

// previous looks at the version that a record replaced: it is held as well.
func (c *checker) previous(r *seglog.Reader, e *seglog.Entry) {
	switch before, err := r.Get(e.Previous); {
	case e.Previous == 0 && e.Kind != seglog.Created:
		c.report.Problem("revision %d: %s was changed before it was created", e.Revision, e.Key)
	case e.Previous == 0:
	case errors.Is(err, seglog.ErrGone) && e.Kind == seglog.Created:
		// The deletion before it may be trimmed.
	case err != nil:
		c.report.Problem("revision %d: the version before, %d: %v", e.Revision, e.Previous, err)
	case string(before.Key) != string(e.Key) || (before.Kind == seglog.Deleted) != (e.Kind == seglog.Created):
		c.report.Problem("revision %d: %s does not follow from revision %d", e.Revision, e.Key, e.Previous)
	}
}

// index goes over the index: every key leads to its record.
func (c *checker) index(ctx context.Context) error {
	after := ""
	return c.inChunks(ctx, func() string { return fmt.Sprintf("index behind %q", after) }, func() (more bool, err error) {
		err = c.View(func(v index.View, r *seglog.Reader) error {
			n := 0
			it := v.Iterate(after, "")
			for ; it.Valid() && n < seglog.Chunk; it.Next() {
				if it.Err() != nil {
					return it.Err()
				}
				n++
				after = string(it.Key()) + "\x00"
				c.key(r, string(it.Key()), it.Pointer())
			}
			more = it.Valid()
			return nil
		})
		return more, err
	})
}

func (c *checker) key(r *seglog.Reader, key string, p index.Pointer) {
	c.report.Keys++
	if !p.Deletion() {
		c.report.Live++
		c.namespaces[key[:strings.IndexByte(key, '/')]]++
	}
	if !p.Deletion() && c.led.Has(p.Revision()) { // which was verified, in the order in which it lies
		if c.met.Has(p.Revision()) {
			c.report.Problem("index: %s at revision %d: another key leads there too", key, p.Revision())
		}
		c.met.Add(p.Revision())
		return
	}
	e, err := r.Get(p.Revision())
	switch {
	case errors.Is(err, seglog.ErrGone) && p.Deletion() && p.Revision() <= c.Log.CompactRevision():
	case err != nil:
		c.report.Problem("index: %s at revision %d: %v", key, p.Revision(), err)
	case string(e.Key) != key || p.Deletion() != (e.Kind == seglog.Deleted):
		c.report.Problem("index: %s leads to another record, revision %d", key, p.Revision())
	case !p.Deletion():
		c.report.LiveBytes += e.Size()
		c.done += e.Size()
	}
}

// maxGone is how many events a checker keeps in memory.
const maxGone = 1 << 20

// deletions looks for versions that an index which is made again from the log
// would bring back: those of events that do not exist, with no deletion behind
// them. It goes over the log once for every maxGone records of that kind.
func (c *checker) deletions(ctx context.Context) error {
	seed := maphash.MakeSeed()
	passes := 1 + uint64(max(0, c.report.Records-c.report.Live))/maxGone
	for pass := range passes {
		left := map[uint64]uint64{} // by hash of the key: the newest version that has no deletion behind it yet
		at := uint64(0)
		err := c.inChunks(ctx, func() string { return fmt.Sprint("log behind revision ", at) }, func() (more bool, err error) {
			err = c.Scan(at, c.Log.Published(), func(e *seglog.Entry, p index.Pointer) bool {
				at, more = e.Revision, true
				if pass == 0 {
					c.done += e.Size()
				}
				h := maphash.Bytes(seed, e.Key)
				switch {
				case h%passes != pass:
				case e.Kind == seglog.Deleted:
					delete(left, h)
				case !p.Live():
					left[h] = e.Revision
				}
				return true
			})
			if err != nil {
				left = nil // of a log that cannot be read nothing can be said
			}
			return more, err
		})
		if err == nil && left != nil {
			err = c.confirmLeft(slices.Sorted(maps.Values(left)))
		}
		if err != nil || left == nil {
			return err
		}
	}
	return nil
}

// confirmLeft reports versions that are still there: others were compacted
// meanwhile, and their deletions with them.
func (c *checker) confirmLeft(revisions []uint64) error {
	for _, revision := range revisions[:min(len(revisions), store.MaxProblems)] {
		err := c.Scan(revision-1, revision, func(e *seglog.Entry, p index.Pointer) bool {
			if !p.Live() {
				c.report.Problem("revision %d: %s does not exist, but an index made again from the log would bring it back; compact the store", revision, e.Key)
			}
			return false
		})
		if err != nil {
			return err
		}
	}
	return nil
}
