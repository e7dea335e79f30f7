package bolt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/columns"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// A match is a version that a selector matches.
type match struct {
	key      string
	revision uint64
}

// A selection is what the columns say of a list that has a selector.
type selection struct {
	found   index.Revisions // versions that match, or may; nil: nobody has looked for them
	few     []uint64        // the same, if they are to be sorted
	matches []match         // of these, those of the state of the list, in order of their keys; nil: they were not sorted
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

// A foundChunk is a chunk of columns that may have rows that match.
type foundChunk struct {
	scan  *columns.Scan
	chunk int
}

// versions asks for versions up to a revision which a filter matches. What columns do not tell of a version may be so.
func versions(f *event.Filter, last uint64) *columns.Query {
	return &columns.Query{From: math.MinInt64, To: math.MaxInt64, Last: last, Filter: f, Whole: true, Held: func(uint64, *event.Filter) (bool, error) { return true, nil }}
}

// search returns the chunks that may have versions which a query asks for.
func (t *turns) search(q *columns.Query) (chunks []foundChunk, err error) {
	tables, err := t.log.Tables(q, t.next)
	for _, table := range tables {
		scan, err := table.Scan(q)
		for chunk := 0; err == nil && scan != nil && chunk < scan.Chunks(); chunk++ {
			var may bool
			if may, err = scan.May(chunk); may {
				chunks = append(chunks, foundChunk{scan, chunk})
			}
		}
		if err == nil {
			err = t.next()
		}
		if err != nil {
			return nil, err
		}
	}
	return chunks, err
}

// each calls f with the revisions of the versions that were found in chunks, some at a time.
func (t *turns) each(chunks []foundChunk, f func(some []uint64) error) (err error) {
	var some []uint64
	for _, c := range chunks {
		if some, err = c.scan.Revisions(c.chunk, some[:0]); err == nil {
			err = f(some)
		}
		if err == nil {
			err = t.next()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// choose decides how the list is read, and finds in the columns which versions it has. If they are damaged, the keys
// lead to each event.
func (l *lister) choose(ctx context.Context) error {
	q := l.query
	if q.Selector == nil || q.Namespace != "" && q.Name != "" { // a range of few keys
		return nil
	}
	events, _ := l.reader.Events(q.Namespace, l.page.Revision)
	if known, ok := l.reader.selected.get(queryText(q, l.page.Revision)); ok {
		l.selection = known
		return nil
	}
	if events <= fewEvents {
		return nil
	}
	err := l.reader.Log.View(func(log *seglog.Reader) error { return l.find(l.reader.turns(ctx, log), events) })
	if err != nil {
		l.selection = selection{}
	}
	if errors.As(err, new(*store.CorruptError)) || errors.Is(err, boltfile.ErrChecksum) {
		return nil
	}
	return err
}

// find finds the versions of the list, if that takes less time than to look at its events.
func (l *lister) find(t *turns, events int64) error {
	q := l.query
	f := q.Selector.Filter()
	if q.Namespace != "" {
		in := &event.Selector{Fields: []event.FieldRequirement{{Field: event.FieldNamespace, Value: q.Namespace}}}
		f = event.All(in.Filter(), f)
	}
	chunks, err := t.search(versions(f, l.page.Revision))
	if err != nil {
		return err
	}
	some, versions := sample(chunks), 0
	err = t.each(some, func(revisions []uint64) error {
		versions += len(revisions)
		return nil
	})
	if err != nil {
		return err
	}
	e := estimate{inRange: events, limit: int64(q.Limit), versions: int64(versions * len(chunks) / max(1, len(some))), chunks: int64(len(chunks)), made: t.log.Made()}
	if e.plan() == walkKeys {
		return nil
	}
	if q.Namespace != "" && events <= int64(len(chunks))*chunkKeys {
		if known, err := l.amongKeys(t, chunks); known || err != nil {
			return err
		}
	}
	l.found, l.few, e.versions, e.chunks = index.Revisions{}, []uint64{}, 0, 0
	err = t.each(chunks, func(revisions []uint64) error {
		l.found.Add(revisions...)
		if e.versions += int64(len(revisions)); e.versions <= maxSorted {
			l.few = append(l.few, revisions...)
		}
		return nil
	})
	if e.plan() != sortFound {
		l.few = nil
	}
	return err
}

// amongKeys finds the versions of the list among those that the keys of its namespace lead to: it looks at their rows
// only. It reports false if one of them is newer than the page: columns lead to the version before it.
func (l *lister) amongKeys(t *turns, chunks []foundChunk) (known bool, err error) {
	all, newer := []match{}, false
	err = l.reader.Index.View(func(v index.View) error {
		from := l.query.Namespace + "/"
		for it := v.Iterate(from, from); it.Valid() && !newer; it.Next() {
			newer = it.Err() != nil || it.Pointer().Revision() > l.page.Revision
			if !it.Pointer().Deletion() {
				all = append(all, match{l.keys.of(it.Key()), it.Pointer().Revision()})
			}
		}
		return nil
	})
	if newer || err != nil {
		return false, err
	}
	some := make([]uint64, len(all))
	for i := range all {
		some[i] = all[i].revision
	}
	slices.Sort(some)
	l.found = index.Revisions{}
	var found []uint64
	for _, c := range chunks {
		if found, err = c.scan.Among(c.chunk, some, found[:0]); err == nil {
			l.found.Add(found...)
			err = t.next()
		}
		if err != nil {
			return false, err
		}
	}
	l.matches = slices.DeleteFunc(all, func(m match) bool { return !l.found.Has(m.revision) })
	return true, nil
}

// sample returns a few chunks of many.
func sample(chunks []foundChunk) (some []foundChunk) {
	for i := range min(sampleChunks, len(chunks)) {
		some = append(some, chunks[i*len(chunks)/min(sampleChunks, len(chunks))])
	}
	return some
}

// sort finds the matches among the versions that were found.
func (l *lister) sort(ctx context.Context, v index.View) (err error) {
	ms := make([]match, 0, len(l.few))
	for i, revision := range l.few {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch e, err := l.log.Get(revision); {
		case skipped(l.log, revision, err):
		case err != nil:
			return err
		case l.wants(&e):
			ms = append(ms, match{l.keys.of(e.Key), revision})
		}
	}
	slices.SortFunc(ms, func(a, b match) int { return strings.Compare(a.key, b.key) })
	l.matches, err = l.valid(ctx, v, ms)
	return err
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
func (l *lister) fill() error {
	from, _ := l.keyRange()
	last := ""
	at, _ := slices.BinarySearchFunc(l.matches, from, func(m match, from string) int { return strings.Compare(m.key, from) })
	for ; at < len(l.matches); at++ {
		if l.full() {
			l.page.More = true
			break
		}
		m := &l.matches[at]
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
