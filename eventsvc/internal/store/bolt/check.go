package bolt

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	berrors "go.etcd.io/bbolt/errors"

	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Report is what [DB.Check] has looked at and found.
type Report struct {
	Revision uint64 `json:"revision"` // the state that was checked
	Records  int64  `json:"records"`  // versions and deletions in the log
	Keys     int64  `json:"keys"`     // events that the index knows
	Live     int64  `json:"live"`     // those that exist

	Bytes     int64 `json:"bytes"`     // of all records
	LiveBytes int64 `json:"liveBytes"` // of those of events that exist

	// CompactRevision is what a restored store continues behind (see [Restore]).
	CompactRevision uint64 `json:"compactRevision,omitempty"`

	Problems []string `json:"problems,omitempty"`

	progress    Progress
	done, total int64 // bytes that were read, and about how many there are to be read
}

// checkChunk is how many records are looked at in one read transaction.
const checkChunk = 4096

// maxProblems bounds a report: where so much is wrong, more would not help.
const maxProblems = 100

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Check reads everything the store holds at the newest revision: the pages of
// every file, the checksum of every record, that log and index agree in both
// directions, and that an index made again from the log would be the same. Writes may go on meanwhile. The error is only for a check
// that could not be made; what it found is in the report. Progress counts bytes.
func (db *DB) Check(ctx context.Context, progress Progress) (*Report, error) {
	s := db.Stats()
	r := &Report{Revision: db.Revision(), progress: progress}
	r.total = 3*(s.LiveBytes+s.HistoryBytes+s.DeadBytes) + s.LiveBytes
	c := checker{db, r}
	for _, check := range []func(context.Context) error{c.pages, c.log, c.index, c.deletions} {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	if s := db.Stats(); s.Revision == r.Revision && (s.Events != r.Live || s.LiveBytes != r.LiveBytes) {
		r.problem("the store counts %d events of %d bytes, but there are %d of %d", s.Events, s.LiveBytes, r.Live, r.LiveBytes)
	}
	progress.tell(r.total, r.total)
	return r, nil
}

// A checker fills a report.
type checker struct {
	db     *DB
	report *Report
}

// read counts bytes that were read.
func (r *Report) read(n int64) {
	r.done += n
	r.progress.tell(min(r.done, r.total), r.total)
}

// pages goes over the pages of each file. (bbolt's own check does that in
// a goroutine where a damaged page would end the process.)
func (c *checker) pages(ctx context.Context) error {
	if err := c.db.index.Check(); err != nil {
		c.report.problem("%s: %v", c.db.index.Path(), err)
	}
	ss := c.db.log.Segments()
	for i, s := range ss {
		err := s.Check(i == len(ss)-1)
		if err != nil && !errors.Is(err, berrors.ErrDatabaseNotOpen) { // not compacted meanwhile
			c.report.problem("%s: %v", s.Path, err)
		}
		c.report.read(s.Bytes())
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// log goes over the log: every record whole, and known to the index.
func (c *checker) log(ctx context.Context) error {
	for at := uint64(0); at < c.report.Revision; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.db.index.View(func(v index.View) error {
			return c.db.log.View(func(log *seglog.Reader) error {
				n := 0
				from := at
				err := log.Scan(from, c.report.Revision, func(e seglog.Entry) bool {
					at = e.Revision
					c.record(log, v, &e)
					n++
					return n < checkChunk
				})
				if n == 0 && err == nil {
					at = c.report.Revision
				}
				return err
			})
		})
		c.report.read(0)
		if err != nil {
			c.report.problem("log behind revision %d: %v", at, err)
			return nil
		}
	}
	return nil
}

func (c *checker) record(log *seglog.Reader, v index.View, e *seglog.Entry) {
	c.report.Records++
	c.report.Bytes += e.Size()
	c.report.done += e.Size()
	compactRevision := c.db.log.CompactRevision()
	p, ok, err := v.Newest(string(e.Key))
	switch {
	case err != nil:
		c.report.problem("revision %d: %v", e.Revision, err)
	case !ok && e.Revision > compactRevision:
		c.report.problem("revision %d: the index does not know %s", e.Revision, e.Key)
	case ok && p.Revision() < e.Revision:
		c.report.problem("revision %d: the index has %s at revision %d", e.Revision, e.Key, p.Revision())
	case ok && p.Revision() == e.Revision && p.Deletion() != (e.Kind == seglog.Deleted):
		c.report.problem("revision %d: log and index disagree about whether %s exists", e.Revision, e.Key)
	}
	if e.Revision <= compactRevision {
		return
	}
	// A version that a held record replaced is held as well.
	switch before, err := log.Get(e.Previous); {
	case e.Previous == 0 && e.Kind != seglog.Created:
		c.report.problem("revision %d: %s was changed before it was created", e.Revision, e.Key)
	case e.Previous == 0:
	case errors.Is(err, seglog.ErrGone) && e.Kind == seglog.Created:
		// The deletion before it may be trimmed.
	case err != nil:
		c.report.problem("revision %d: the version before, %d: %v", e.Revision, e.Previous, err)
	case string(before.Key) != string(e.Key) || (before.Kind == seglog.Deleted) != (e.Kind == seglog.Created):
		c.report.problem("revision %d: %s does not follow from revision %d", e.Revision, e.Key, e.Previous)
	}
}

// index goes over the index: every key leads to its record.
func (c *checker) index(ctx context.Context) error {
	after := ""
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := 0
		err := c.db.index.View(func(v index.View) error {
			return c.db.log.View(func(log *seglog.Reader) error {
				for it := v.Iterate(after, ""); it.Valid() && n < checkChunk; it.Next() {
					if it.Err() != nil {
						return it.Err()
					}
					n++
					after = string(it.Key()) + "\x00"
					c.key(log, string(it.Key()), it.Pointer())
				}
				return nil
			})
		})
		c.report.read(0)
		if err != nil {
			c.report.problem("index behind %q: %v", after, err)
			return nil
		}
		if n < checkChunk {
			return nil
		}
	}
}

func (c *checker) key(log *seglog.Reader, key string, p index.Pointer) {
	c.report.Keys++
	if !p.Deletion() {
		c.report.Live++
	}
	e, err := log.Get(p.Revision())
	switch {
	case errors.Is(err, seglog.ErrGone) && p.Deletion() && p.Revision() <= c.db.log.CompactRevision():
	case err != nil:
		c.report.problem("index: %s at revision %d: %v", key, p.Revision(), err)
	case string(e.Key) != key || p.Deletion() != (e.Kind == seglog.Deleted):
		c.report.problem("index: %s leads to another record, revision %d", key, p.Revision())
	case !p.Deletion():
		c.report.LiveBytes += e.Size()
		c.report.done += e.Size()
	}
}

// mostGone is how many events a checker keeps in memory.
const mostGone = 1 << 20

// deletions looks for versions that an index which is made again from the log
// would bring back: those of events that do not exist, with no deletion behind
// them. It goes over the log once for every mostGone records of that kind.
func (c *checker) deletions(ctx context.Context) error {
	seed := maphash.MakeSeed()
	passes := 1 + uint64(max(0, c.report.Records-c.report.Live))/mostGone
	for pass := range passes {
		left := map[uint64]uint64{} // by hash of the key: the newest version that has no deletion behind it yet
		for at, more := uint64(0), true; more; {
			if err := ctx.Err(); err != nil {
				return err
			}
			more = false
			err := c.db.scanLog(at, c.db.Revision(), func(e *seglog.Entry, p index.Pointer) bool {
				at, more = e.Revision, true
				if pass == 0 {
					c.report.done += e.Size()
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
			c.report.read(0)
			if err != nil {
				c.report.problem("log behind revision %d: %v", at, err)
				return nil
			}
		}
		if err := c.confirmLeft(slices.Sorted(maps.Values(left))); err != nil {
			return err
		}
	}
	return nil
}

// confirmLeft reports versions that are still there: others were compacted
// meanwhile, and their deletions with them.
func (c *checker) confirmLeft(revisions []uint64) error {
	for _, revision := range revisions[:min(len(revisions), maxProblems)] {
		err := c.db.scanLog(revision-1, revision, func(e *seglog.Entry, p index.Pointer) bool {
			if !p.Live() {
				c.report.problem("revision %d: %s does not exist, but an index made again from the log would bring it back; compact the store", revision, e.Key)
			}
			return false
		})
		if err != nil {
			return err
		}
	}
	return nil
}
