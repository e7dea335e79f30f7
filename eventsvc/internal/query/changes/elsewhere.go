package changes

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Bounds of the notes that are read to find which rows bear on a namespace.
const (
	maxNotes      = 2000
	notesOfSeries = 20
)

// bearing returns the rows that bear on the namespaces of the question: their own, those about
// objects without a namespace or kube-system, and those that name the namespaces or are named
// by them.
func (c *comparison) bearing(ctx context.Context, rows []*candidate) ([]*candidate, error) {
	if len(c.q.Namespaces) == 0 || c.q.ofObject() {
		return rows, nil
	}
	c.answer.Scope = fmt.Sprintf("%s; and elsewhere what concerns Nodes or other objects without a namespace, %s, or names %s or is named there, as far as you may list it",
		strings.Join(c.q.Namespaces, ", "), systemNamespace, them(len(c.q.Namespaces)))
	own, others := map[tallyKey]bool{}, map[tallyKey]*candidate{}
	for _, r := range rows {
		if c.own(r) {
			for _, s := range r.tallies {
				own[s.tallyKey] = c.q.asked(s.namespace)
			}
			continue
		}
		if r.elsewhere = r.wide(); r.elsewhere == "" {
			for _, s := range r.tallies {
				others[s.tallyKey] = r
			}
		}
	}
	if err := c.namedBy(ctx, own, others); err != nil {
		return nil, err
	}
	if err := c.naming(ctx, others); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(r *candidate) bool { return r.elsewhere == "" && !c.own(r) }), nil
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// own reports whether a row is about a namespace of the question.
func (c *comparison) own(r *candidate) bool {
	return slices.ContainsFunc(r.tallies, func(s *tally) bool { return c.q.asked(s.namespace) })
}

// wide says why a row concerns every namespace, empty if it does not.
func (r *candidate) wide() string {
	switch {
	case r.namespace == systemNamespace:
		return "is about " + systemNamespace
	case r.namespace != "" && r.clusterWide():
		return "is about a " + r.kind
	}
	return ""
}

// namedBy marks the rows whose namespace is named in notes of the question's namespaces.
func (c *comparison) namedBy(ctx context.Context, own map[tallyKey]bool, others map[tallyKey]*candidate) error {
	return c.notes(ctx, func(k tallyKey) bool { return own[k] }, func(v *store.View, note []byte) {
		for k, r := range others {
			if r.elsewhere == "" && names(note, k.namespace) {
				r.elsewhere = "is named in " + v.Namespace
			}
		}
	})
}

// naming marks the rows that are about an object without a namespace, or name a namespace of the
// question.
func (c *comparison) naming(ctx context.Context, others map[tallyKey]*candidate) error {
	undecided := func(k tallyKey) bool { return others[k] != nil && others[k].elsewhere == "" }
	return c.notes(ctx, undecided, func(v *store.View, note []byte) {
		d := event.DimensionsOf(v.Namespace, v.Attributes)
		r := others[keyOf(&d)]
		if len(v.Attributes.Field(event.RegardingNamespace)) == 0 {
			r.elsewhere = "is about a " + d.Kind
		}
		for _, namespace := range c.q.Namespaces {
			if r.elsewhere == "" && (names(note, namespace) || d.Kind == "Namespace" && string(v.Attributes.Field(event.RegardingName)) == namespace) {
				r.elsewhere = "names " + namespace
			}
		}
	})
}

// notes calls visit with the newest events of some series in the window.
func (c *comparison) notes(ctx context.Context, wanted func(tallyKey) bool, visit func(v *store.View, note []byte)) (err error) {
	reads := map[tallyKey]int{}
	q := store.TimeQuery{Range: c.answer.Range, Wanted: func(d event.Dimensions) bool {
		k := keyOf(&d)
		return c.q.wanted(d) && wanted(k) && reads[k] < notesOfSeries
	}}
	q.Revision = c.answer.Range.Revision
	readErr := c.observed(ctx, q, maxNotes, func(v *store.View, _ store.Moment) bool {
		d := event.DimensionsOf(v.Namespace, v.Attributes)
		k := keyOf(&d)
		if reads[k]++; !wanted(k) || reads[k] > notesOfSeries {
			return true
		}
		var note []byte
		if note, err = c.q.Note(v); err == nil {
			visit(v, note)
		}
		return err == nil
	})
	if err == nil {
		err = readErr
	}
	return err
}

// names reports whether a note names a namespace: as it stands in references and addresses
// (shop/web, db.shop.svc, web_shop, namespace "shop"). A word alone may mean anything.
func names(note []byte, namespace string) bool {
	for rest := note; ; {
		i := bytes.Index(rest, []byte(namespace))
		if i < 0 {
			return false
		}
		at := len(note) - len(rest) + i
		before, after := note[:at], note[at+len(namespace):]
		switch {
		case isNamePart(before, len(before)-1) || isNamePart(after, 0): // of a longer name
		case bytes.HasPrefix(after, []byte("/")), bytes.HasPrefix(after, []byte(".svc")), bytes.HasSuffix(before, []byte("_")),
			bytes.HasSuffix(bytes.TrimRight(before, `"' :=`), []byte("namespace")):
			return true
		}
		rest = rest[i+len(namespace):]
	}
}

// isNamePart reports whether a text has a character of names at a place.
func isNamePart(text []byte, i int) bool {
	return i >= 0 && i < len(text) && (text[i] == '-' || '0' <= text[i] && text[i] <= '9' || 'a' <= text[i] && text[i] <= 'z' || 'A' <= text[i] && text[i] <= 'Z')
}
