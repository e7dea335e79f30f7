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

// A match is a version that a selector matches.
type match struct {
	key      string
	revision uint64
	// Of its record if its segment was sealed: a sealed segment is not written, so its pages
	// stay where they are as long as it is open.
	position seglog.Position
}

// queryText returns the same text for the pages of one list, and another for other lists.
func queryText(q *store.Query, revision uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q %q", revision, q.Namespace, q.Name)
	for _, f := range q.Selector.Fields {
		fmt.Fprintf(&b, " %d %v %v %q", f.Field, f.Not, f.Pattern, f.Value)
	}
	for i := range q.Selector.Labels {
		fmt.Fprintf(&b, " %s", &q.Selector.Labels[i])
	}
	return b.String()
}

// remembered returns all matches of the list, if they were sorted for an earlier page. A
// list that has no selector has none.
func (l *lister) remembered() (matches []match, ok bool) {
	if l.query.Selector == nil {
		return nil, false
	}
	return l.reader.sorted.get(queryText(l.query, l.page.Revision))
}

// sorted reads the page from the versions that have one of the terms. It sorts all of them,
// which other pages of the list need not do again.
func (l *lister) sorted(ctx context.Context, v index.View, terms []index.Term) error {
	matches, err := l.matches(ctx, v, terms)
	if err != nil {
		return err
	}
	if err = l.fill(matches); err == nil && l.page.More {
		l.reader.sorted.put(queryText(l.query, l.page.Revision), matches)
	}
	return err
}

// matches returns the versions with one of the terms that match the query, in order of
// their keys.
//
// It does not verify the records of those, which fill does. It verifies the others before
// it leaves them out, so that damage hides no event.
func (l *lister) matches(ctx context.Context, v index.View, terms []index.Term) (ms []match, err error) {
	revisions, err := v.Postings(terms)
	if err != nil {
		return nil, err
	}
	ms = make([]match, 0, len(revisions))
	for i, revision := range revisions {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if revision > l.page.Revision {
			break
		}
		record, err := l.log.Lookup(revision)
		var e seglog.Entry
		if err == nil {
			e, err = seglog.SplitEntry(revision, record)
			err = seglog.Corrupt(revision, err)
		}
		if err == nil && !l.wants(&e) {
			_, err = seglog.ParseStored(revision, record)
			e.Key = nil
		}
		switch {
		case err == seglog.ErrGone && !l.log.Complete(revision): //nolint:errorlint // as Lookup returns it: dead and compacted away
		case err != nil:
			return nil, err
		case e.Key != nil:
			ms = append(ms, match{l.keys.of(e.Key), revision, l.log.Position(revision, record)})
		}
	}
	slices.SortFunc(ms, func(a, b match) int { return strings.Compare(a.key, b.key) })
	return l.valid(ctx, v, ms)
}

// valid returns the versions that were the newest of their event at the revision of the
// page. In order of keys, the index is read fastest.
func (l *lister) valid(ctx context.Context, v index.View, ms []match) (valid []match, err error) {
	valid = ms[:0]
	for i, m := range ms {
		if i%checkEvery == 0 && ctx.Err() != nil {
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

// fill lends the matches of the page to visit.
func (l *lister) fill(matches []match) error {
	from, _ := l.keyRange()
	at, _ := slices.BinarySearchFunc(matches, from, func(m match, from string) int { return strings.Compare(m.key, from) })
	for ; at < len(matches); at++ {
		if l.full() {
			l.page.More = true
			break
		}
		m := &matches[at]
		record, err := l.log.LookupAgain(m.revision, m.position)
		if err != nil {
			return err
		}
		e, err := seglog.ParseStored(m.revision, record)
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

// wants reports whether a version matches the query, apart from its page.
func (l *lister) wants(e *seglog.Entry) bool {
	q := l.query
	namespace, name := e.Key[:e.NamespaceLen], e.Key[e.NamespaceLen+1:]
	return (q.Namespace == "" || q.Namespace == string(namespace)) && (q.Name == "" || q.Name == string(name)) &&
		(q.Selector == nil || q.Selector.Matches(string(namespace), string(name), e.Attributes))
}
