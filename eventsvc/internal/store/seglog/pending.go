package seglog

import (
	"cmp"
	"slices"
	"sync"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/observed"
	"tidings.example/eventsvc/internal/store/wal"
)

// staleEntries is how many entries pendingObserved keeps of records that are not pending any
// more.
const staleEntries = 4096

// pendingObserved remembers what pending records report, so that each is parsed once and not
// by every reader. Entries are only added, so that readers need no lock for those that they
// were given. It is safe for concurrent use.
type pendingObserved struct {
	mu    sync.Mutex
	first uint64 // all records from here on
	last  uint64 // up to here were parsed
	found *observed.Collection
}

// of returns what records report, which are pending or were a moment ago, and perhaps what
// others do.
func (p *pendingObserved) of(l *Log, records []wal.Record) (entries []observed.Observation, texts []string) {
	if len(records) == 0 {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil && records[0].Revision < p.first { // the reader is behind the others
		found := addAll(observed.NewCollection(), l, records)
		return found.Entries, found.Texts
	}
	if p.found == nil || records[0].Revision > p.last || len(p.found.Entries) > len(records)+staleEntries {
		p.found, p.first, p.last = observed.NewCollection(), records[0].Revision, 0
	}
	addAll(p.found, l, wal.After(records, p.last))
	p.last = max(p.last, records[len(records)-1].Revision)
	return p.found.Entries, p.found.Texts
}

// unindexedRuns is the part of the pending records.
type unindexedRuns struct {
	runs  []observed.Run
	texts []string // of their series
	at    int
}

// pendingPart returns what pending records report that have revisions behind after, up to
// last, of a range of seconds.
func (r *Reader) pendingPart(after, last uint64, from, to int64) (part, error) {
	entries, texts := r.log.reported.of(r.log, r.pending)
	p := &unindexedRuns{texts: texts}
	var found observed.Collection
	for _, e := range entries {
		if second := e.Minute*60 + int64(e.Second); e.Revision > after && e.Revision <= last && second >= from && second < to {
			found.Entries = append(found.Entries, e)
		}
	}
	err := found.ByMinute(func(minute int64, entries []observed.Entry) error {
		k := observed.Key(minute, observed.Last(entries))
		run, err := observed.Parse(k, observed.AppendRun(nil, k, entries))
		p.runs = append(p.runs, run)
		return err
	})
	return p, err
}

func (*unindexedRuns) base() uint64 { return 0 }

func (p *unindexedRuns) seek(minute int64, oldestFirst bool) {
	if !oldestFirst {
		minute++
	}
	p.at, _ = slices.BinarySearchFunc(p.runs, minute, func(r observed.Run, minute int64) int { return cmp.Compare(r.Minute, minute) })
	if !oldestFirst {
		p.at--
	}
}

func (p *unindexedRuns) next(oldestFirst bool) {
	if oldestFirst {
		p.at++
	} else {
		p.at--
	}
}

func (p *unindexedRuns) minute() (minute int64, ok bool, err error) {
	if p.at < 0 || p.at >= len(p.runs) {
		return 0, false, nil
	}
	return p.runs[p.at].Minute, true, nil
}

func (p *unindexedRuns) run() (observed.Run, error) { return p.runs[p.at], nil }

func (p *unindexedRuns) dimensions(series uint32) (event.Dimensions, error) {
	return observed.ParseSeries([]byte(p.texts[series]))
}
