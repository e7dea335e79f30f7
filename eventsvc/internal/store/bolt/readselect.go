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
}

// queryText returns the same text for the pages of one list, and another for other lists.
func queryText(q *store.Query, revision uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q %q", revision, q.Namespace, q.Name)
	for _, f := range q.Selector.Fields {
		fmt.Fprintf(&b, " %d %v %q", f.Field, f.Not, f.Value)
	}
	for i := range q.Selector.Labels {
		fmt.Fprintf(&b, " %s", &q.Selector.Labels[i])
	}
	fmt.Fprintf(&b, " %q", q.Selector.Clusters)
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
		switch e, err := l.log.Get(revision); {
		case skipped(l.log, revision, err):
		case err != nil:
			return nil, err
		case l.wants(&e):
			ms = append(ms, match{l.keys.of(e.Key), revision})
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
			if !ok {
				continue
			}
			now, there, err := l.version(&keyItem{pointer: p, at: l.log.Position(p.Revision())})
			if err != nil {
				return nil, err
			}
			if !there || now.Revision != m.revision {
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
	last := ""
	at, _ := slices.BinarySearchFunc(matches, from, func(m match, from string) int { return strings.Compare(m.key, from) })
	for ; at < len(matches); at++ {
		if l.full() {
			l.page.More = true
			break
		}
		m := &matches[at]
		e, err := l.log.Get(m.revision)
		if err != nil {
			return err
		}
		if err := l.add([]byte(m.key), &e); err != nil {
			return err
		}
		last = m.key
	}
	if last != "" {
		l.page.Last = seglog.KeyOf([]byte(last))
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
