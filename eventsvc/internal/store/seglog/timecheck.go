package seglog

import (
	"bytes"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
)

// CheckObserved compares the index by time of a segment with its records, and calls problem
// with what is wrong: entries and records lead to each other.
func CheckObserved(s *Segment, problem func(format string, args ...any)) error {
	return s.view(func(tx *bbolt.Tx) error {
		c := observedChecker{segment: s, tx: tx, problem: problem, entries: map[uint64][]observation{}, series: map[uint32][]byte{}}
		if err := c.readRuns(); err != nil {
			return err
		}
		if err := c.compareRecords(); err != nil {
			return err
		}
		for _, revision := range slices.Sorted(maps.Keys(c.entries)) {
			problem("revision %d: it is in the index by time, and there is no such version", revision)
		}
		return nil
	})
}

// An observedChecker checks the index by time of one segment.
type observedChecker struct {
	segment *Segment
	tx      *bbolt.Tx
	problem func(format string, args ...any)
	damaged bool                     // entries may be missing
	entries map[uint64][]observation // by revision, in their order
	series  map[uint32][]byte
	room    []byte
}

func (c *observedChecker) readRuns() error {
	b := c.tx.Bucket([]byte(bucketRuns))
	if b == nil {
		c.damaged = true
		c.problem("index by time: %v", errSegmentNote)
		return nil
	}
	sums := c.newSumsChecker()
	err := b.ForEach(func(k, v []byte) error {
		var entries []runEntry
		run, err := parseRun(k, v)
		if err == nil {
			entries, err = run.Append(nil, c.known)
		}
		for _, e := range entries {
			if e.Node != 0 && err == nil {
				_, err = c.known(e.Node - 1)
			}
			if e.Revision != 0 {
				c.entries[e.Revision] = append(c.entries[e.Revision], observation{Minute: run.Minute, runEntry: e})
			}
		}
		if err != nil {
			c.damaged = true
			c.problem("index by time, minute %x: %v", k, err)
			return nil
		}
		if sums.kept == nil {
			return nil
		}
		return sums.Add(run.Minute, entries)
	})
	if err != nil || c.damaged { // and the sums may have more
		return err
	}
	return sums.End()
}

// A sumsChecker compares the sums of hours with what the runs report.
type sumsChecker struct {
	hourSums
	*observedChecker
	kept *bbolt.Bucket // nil: there are none, and counts read the runs
	n    int
}

func (c *observedChecker) newSumsChecker() *sumsChecker {
	s := &sumsChecker{observedChecker: c, kept: c.tx.Bucket([]byte(bucketSums))}
	s.Put = s.compare
	return s
}

func (s *sumsChecker) compare(key, value []byte) error {
	if s.n++; !s.damaged && !bytes.Equal(s.kept.Get(key), value) {
		s.problem("index by time, hour %x: its sums are not those of its minutes", key)
	}
	return nil
}

// End compares the last hour, and the number of hours.
func (s *sumsChecker) End() error {
	err := s.Flush()
	if s.kept != nil && s.kept.Stats().KeyN != s.n {
		s.problem("index by time: there are sums of %d hours, want %d", s.kept.Stats().KeyN, s.n)
	}
	return err
}

// known returns an error unless a series, or a node, has texts.
func (c *observedChecker) known(series uint32) (group int, err error) {
	if _, ok := c.series[series]; ok {
		return 0, nil
	}
	texts, err := seriesIn(c.tx, series)
	if err == nil {
		c.series[series] = texts
	}
	return 0, err
}

// compareRecords compares the entries with the records, and takes those out that have one.
func (c *observedChecker) compareRecords() error {
	_, err := recordsIn(c.segment, c.tx).Each(0, func(revision uint64, record []byte) (more bool, err error) {
		c.compare(revision, record)
		return true, nil
	}, func(l *lostRange) (more bool, err error) { // which is reported already
		l.EachRevision(func(revision uint64) { delete(c.entries, revision) })
		return true, nil
	})
	return err
}

// compare compares the entry of a record with it.
func (c *observedChecker) compare(revision uint64, record []byte) {
	e, err := parseEntry(revision, record)
	is, there := c.entries[revision]
	if err == nil && e.Kind == Deleted {
		return
	}
	delete(c.entries, revision)
	switch {
	case err != nil: // which is reported already
	case !there && !c.damaged:
		c.problem("revision %d: the index by time lacks it", revision)
	case there:
		var node string
		c.room, node = appendSeries(c.room[:0], e.Key[:e.NamespaceLen], e.Attributes)
		want := newCollection()
		if o, ok := event.Attributes(e.Attributes).Occurrence(); ok {
			want.Add(e.Key[:e.NamespaceLen], e.Attributes, revision, o)
		}
		same := func(is, want observation) bool {
			want.Series, want.Node = is.Series, is.Node
			return is == want && c.names(is.Node, node) && bytes.Equal(c.room, c.series[is.Series])
		}
		lacks := c.damaged && len(is) < len(want.Entries)
		if len(want.Entries) > 0 && !lacks && !slices.EqualFunc(is, want.Entries, same) {
			c.problem("revision %d: the index by time has something else of %s", revision, e.Key)
		}
	}
}

// names reports whether the node of an entry has this name, or none.
func (c *observedChecker) names(node uint32, name string) bool {
	if node == 0 {
		return name == ""
	}
	return string(c.series[node-1]) == nodeTexts(name)
}
