package bolt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// A selector is answered from the terms if so few versions have them; beyond
// that, going over all keys is as fast.
const (
	findShare = 8       // one in so many
	findMost  = 1 << 17 // entries of a list that is remembered
	findDear  = 1 << 12 // a list of so many is remembered even if it is read at once
)

// A match is a version that a query has found.
type match struct {
	key      string
	revision uint64
	// Where its record is, if the segment was sealed: its pages stay where they
	// are as long as it is open.
	segment *seglog.Segment
	record  []byte
}

// lists remembers results of lists, for their next pages. The state of a revision does
// not change, so that nothing in it gets stale.
type lists struct {
	found     recent[string, []match] // the whole result of a query
	remaining recent[pageEnd, int64]  // how many events lie behind the end of a page
}

func newLists() *lists {
	return &lists{found: newRecent[string, []match](4), remaining: newRecent[pageEnd, int64](256)}
}

// queryText is equal for queries that differ in nothing but their page.
func queryText(q *store.Query, revision uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q %q", revision, q.Namespace, q.Name)
	for _, f := range q.Selector.Fields {
		fmt.Fprintf(&b, " %d %v %q", f.Field, f.Not, f.Value)
	}
	for i := range q.Selector.Labels {
		fmt.Fprintf(&b, " %s", &q.Selector.Labels[i])
	}
	return b.String()
}

// find fills the page by way of the terms. It reports false if the selector
// asks for nothing that has a term, or for too much.
func (l *lister) find(ctx context.Context, v index.View) (bool, error) {
	if l.query.Selector == nil || l.query.Count {
		return false, nil
	}
	text := queryText(l.query, l.page.Revision)
	matches, known := l.db.lists.found.get(text)
	if !known {
		best, ok := v.Rarest(l.query.Selector, int(l.db.usage.Live().Events)/findShare+1)
		if !ok {
			return false, nil
		}
		var err error
		if matches, err = l.matches(ctx, v, best); err != nil {
			return false, err
		}
	}
	err := l.fill(matches)
	if !known && err == nil && (l.page.More || len(matches) > findDear) && len(matches) <= findMost {
		l.db.lists.found.put(text, matches)
	}
	return true, err
}

// matches returns all versions with one of the terms that the query asks for,
// in order of their keys.
//
// What it takes it has only peeked at: that is verified when the page is filled.
// But it leaves nothing out that it has not verified, so that no damage hides a
// version.
func (l *lister) matches(ctx context.Context, v index.View, any []index.Term) (ms []match, err error) {
	revisions, err := v.Postings(any)
	if err != nil {
		return nil, err
	}
	ms = make([]match, 0, len(revisions))
	for i, revision := range revisions {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if revision > l.page.Revision {
			break
		}
		record, err := l.log.Lookup(revision)
		var e seglog.Entry
		if err == nil {
			e, err = seglog.SplitRecord(revision, record)
			err = seglog.Corrupt(revision, err)
		}
		if err == nil && !l.wants(&e) {
			_, err = l.log.Get(revision)
			e.Key = nil
		}
		switch {
		case err == seglog.ErrGone && !l.log.Complete(revision): //nolint:errorlint // as lookup returns it: dead and compacted away
		case err != nil:
			return nil, err
		case e.Key != nil:
			ms = append(ms, match{l.texts.text(e.Key), revision, l.log.Sealed(revision), record})
		}
	}
	slices.SortFunc(ms, func(a, b match) int { return strings.Compare(a.key, b.key) })
	return l.valid(ctx, v, ms)
}

// valid returns those of the versions that were the newest of their event at
// the revision of the page. They are in order of keys, which is the one in
// which the index is read fastest.
func (l *lister) valid(ctx context.Context, v index.View, ms []match) (valid []match, err error) {
	valid = ms[:0]
	for i, m := range ms {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p, ok, err := v.Newest(m.key)
		if err != nil {
			return nil, err
		}
		if !ok || p.Revision() != m.revision {
			if _, err := l.log.Get(m.revision); err != nil {
				return nil, err
			}
			now, there, err := l.version(&keyItem{pointer: p})
			if err != nil {
				return nil, err
			}
			if !ok || !there || now.Revision != m.revision {
				continue
			}
		}
		valid = append(valid, m)
	}
	return valid, nil
}

func (l *lister) fill(matches []match) error {
	from, _ := l.keyRange()
	at, _ := slices.BinarySearchFunc(matches, from, func(m match, from string) int { return strings.Compare(m.key, from) })
	for ; at < len(matches); at++ {
		if l.full() {
			l.page.More = true
			break
		}
		m := &matches[at]
		record, err := l.log.LookupAgain(m.revision, m.segment, m.record)
		if err != nil {
			return err
		}
		e, err := seglog.Parse(m.revision, record)
		if err != nil {
			return err
		}
		if err := l.add([]byte(m.key), &e); err != nil {
			return err
		}
		l.after = m.key
	}
	if l.after != "" {
		l.page.Last = seglog.KeyOf([]byte(l.after))
	}
	return nil
}

// wants reports whether a version matches everything but the page of a query.
func (l *lister) wants(e *seglog.Entry) bool {
	q := l.query
	namespace, name := e.Key[:e.NamespaceLen], e.Key[e.NamespaceLen+1:]
	return (q.Namespace == "" || q.Namespace == string(namespace)) && (q.Name == "" || q.Name == string(name)) &&
		(q.Selector == nil || q.Selector.Matches(string(namespace), string(name), e.Attributes))
}
