package seglog

import (
	"cmp"
	"slices"
	"sync"
	"unique"

	"tidings.example/eventsvc/internal/event"
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
	found *collection
}

// of returns what records report, which are pending or were a moment ago, and perhaps what
// others do.
func (p *pendingObserved) of(records []wal.Record) (entries []observation, texts []string) {
	if len(records) == 0 {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil && records[0].Revision < p.first { // the reader is behind the others
		found := addAll(newCollection(), records)
		return found.Entries, found.Texts
	}
	if p.found == nil || records[0].Revision > p.last || len(p.found.Entries) > len(records)+staleEntries {
		p.found, p.first, p.last = newCollection(), records[0].Revision, 0
	}
	addAll(p.found, wal.After(records, p.last))
	p.last = max(p.last, records[len(records)-1].Revision)
	return p.found.Entries, p.found.Texts
}

// pendingRuns is the part of the pending records.
type pendingRuns struct {
	runs  []minuteRun
	texts []string // of their series
	at    int
}

// pendingPart returns what pending records report that have revisions behind after, up to
// last, of a range of seconds, in series that are seen.
func (r *Reader) pendingPart(after, last uint64, from, to int64, sees func(event.Dimensions) bool) (part, error) {
	entries, texts := r.log.reported.of(r.pending)
	p := &pendingRuns{texts: texts}
	hidden := map[uint32]bool{}
	var found collection
	for _, e := range entries {
		second := e.Minute*60 + int64(e.Second)
		if e.Revision <= after || e.Revision > last || second < from || second >= to {
			continue
		}
		if _, known := hidden[e.Series]; sees != nil && !known {
			d, err := p.dimensions(e.Series)
			if err != nil {
				return nil, err
			}
			hidden[e.Series] = !sees(d.Value())
		}
		if !hidden[e.Series] {
			found.Entries = append(found.Entries, e)
		}
	}
	err := found.ByMinute(func(minute int64, entries []runEntry) error {
		k := runKey(minute, lastOf(entries))
		run, err := parseRun(k, appendRun(nil, k, entries))
		p.runs = append(p.runs, run)
		return err
	})
	return p, err
}

func (*pendingRuns) file() uint64 { return 0 }

func (p *pendingRuns) seek(minute int64, oldestFirst bool) {
	if !oldestFirst {
		minute++
	}
	p.at, _ = slices.BinarySearchFunc(p.runs, minute, func(r minuteRun, minute int64) int { return cmp.Compare(r.Minute, minute) })
	if !oldestFirst {
		p.at--
	}
}

func (p *pendingRuns) next(oldestFirst bool) {
	if oldestFirst {
		p.at++
	} else {
		p.at--
	}
}

func (p *pendingRuns) minute() (minute int64, ok bool, err error) {
	if p.at < 0 || p.at >= len(p.runs) {
		return 0, false, nil
	}
	return p.runs[p.at].Minute, true, nil
}

func (p *pendingRuns) run() (minuteRun, error) { return p.runs[p.at], nil }

func (p *pendingRuns) dimensions(series uint32) (unique.Handle[event.Dimensions], error) {
	return uniqueSeries([]byte(p.texts[series]))
}
