package bolt

import "tidings.example/eventsvc/internal/store/index"

// A plan is a way to find the events of a list.
type plan uint8

const (
	// walkKeys goes over the keys of the range and looks at the record of each.
	walkKeys plan = iota
	// walkPostings goes over the keys of the range too, but looks only at the records of
	// versions that the postings of the selector's rarest terms have.
	walkPostings
	// sortPostings looks up all versions that the postings have, and sorts them by key. That
	// is done once for all pages of a list.
	sortPostings
)

// What the steps of a plan take, in nanoseconds. They were measured in a store of 3,000,000
// events; their ratios decide.
const (
	keyCost     = 80   // to pass over a key
	recordCost  = 4000 // to look up and verify the record of a key
	postingCost = 10   // to read a posting into a set
	matchCost   = 5000 // to look up a posting's version, and to find out whether it is the newest one
)

const (
	// callEvents is about how many events of an unlimited list are read in one call, each of
	// which reads the set of postings again.
	callEvents = 256
	// maxSorted bounds the time of a call and what is remembered: versions beyond it are
	// not sorted.
	maxSorted = 1 << 15
)

// An estimate is what is known of a list before any of it is read.
type estimate struct {
	events   int64 // that exist
	inRange  int64 // of these, those of the list's namespace
	limit    int64 // of the page; 0: none
	versions int64 // that the postings have, superseded ones too
}

// plan returns the plan that takes the least time, as if the postings were spread evenly
// over the keys.
func (e estimate) plan() plan {
	share := min(1, float64(e.versions)/float64(max(1, e.events)))
	keys := float64(e.inRange)
	found := keys * share
	if limit := float64(e.limit); limit > 0 && limit < found {
		keys, found = limit/share, limit
	}
	postings := float64(e.versions)
	all := keys * recordCost
	some := max(1, found/callEvents)*postings*postingCost + keys*keyCost + found*recordCost
	sorted := postings*matchCost + found*recordCost
	switch {
	case sorted <= min(all, some) && e.versions <= maxSorted:
		return sortPostings
	case some < all:
		return walkPostings
	}
	return walkKeys
}

// plan decides how the page is read, and returns the terms whose postings that needs.
func (l *lister) plan(v index.View) (plan, []index.Term) {
	q := l.query
	if q.Selector == nil || q.Namespace != "" && q.Name != "" { // a range of few keys
		return walkKeys, nil
	}
	terms, versions, ok := v.Rarest(q.Selector)
	if !ok {
		return walkKeys, nil
	}
	events, _ := l.reader.Events("", l.page.Revision)
	inRange, _ := l.reader.Events(q.Namespace, l.page.Revision)
	return estimate{events, inRange, int64(q.Limit), int64(versions)}.plan(), terms
}
