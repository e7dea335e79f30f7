package changes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// telling is what the newest events of a row say.
type telling struct {
	notes map[string]*shared // by their text without numbers
	names map[string]bool    // of objects
}

// shared is a note that several events have.
type shared struct {
	count, words int
	newest       *store.Record
	note         string
}

// tell finds for each row the note that tells most, its object if all its events are about one, what other problems a
// Node or the like has, and the namespaces that its notes name.
func (c *comparison) tell(ctx context.Context, rows []*candidate) error {
	by, namespaces := map[tallyKey][]*candidate{}, map[string]bool{}
	for _, r := range rows {
		namespaces[r.namespace] = r.namespace != ""
		for _, s := range r.tallies {
			by[s.tallyKey] = append(by[s.tallyKey], r)
		}
	}
	told, others := map[*candidate]*telling{}, map[subject]bool{}
	err := c.notes(ctx, func(k tallyKey) bool { return by[k] != nil || hasNone[k.kind] && k.alarming() }, func(v *store.View, note []byte) {
		d := event.DimensionsOf(v.Namespace, v.Attributes)
		if by[keyOf(&d)] == nil {
			others[subject{keyOf(&d), string(v.Attributes.Field(event.RegardingName))}] = true
		}
		for _, r := range by[keyOf(&d)] {
			if !r.about(c, v.Attributes) {
				continue
			}
			t := told[r]
			if t == nil {
				t = &telling{notes: map[string]*shared{}, names: map[string]bool{}}
				told[r] = t
			}
			t.add(v, string(note))
			r.points = appendNamespaces(r.points, note, namespaces)
		}
	})
	if err != nil {
		return err
	}
	alone, err := c.alone(ctx, told)
	for r, t := range told {
		r.named = alone[r]
		r.learn(t, others)
	}
	return err
}

// sole returns the rows of which all notes that were read are about one object, and that object.
func sole(told map[*candidate]*telling) map[*candidate]string {
	of := map[*candidate]string{}
	for r, t := range told {
		if len(t.names) != 1 || r.object != "" || r.namespace == "" || r.way == Failing {
			continue
		}
		for name := range t.names {
			of[r] = name
		}
	}
	return of
}

// alone returns the rows all of whose events are about one object, and that object. Besides the notes that were read,
// all that came is counted to find another one.
func (c *comparison) alone(ctx context.Context, told map[*candidate]*telling) (map[*candidate]string, error) {
	alone, by := sole(told), map[tallyKey][]*candidate{}
	known := map[string]bool{} // all other objects are one, so that they need no memory
	for r, name := range alone {
		known[name] = true
		for _, s := range r.tallies {
			by[s.tallyKey] = append(by[s.tallyKey], r)
		}
	}
	if len(alone) == 0 {
		return alone, nil
	}
	groups, of := map[subject]int{}, []subject{}
	in := c.answer.Range
	in.Sees = c.q.sees
	err := c.timeline.Count(ctx, store.Count{Range: in, By: compared, Objects: true, Group: func(d event.Dimensions, o event.Regarding) int {
		s := subject{tallyKey: keyOf(&d)}
		if by[s.tallyKey] == nil || !c.q.wanted(d) {
			return -1
		}
		if known[o.Name] {
			s.object = o.Name
		}
		i, ok := groups[s]
		if !ok {
			i = len(of)
			groups[s], of = i, append(of, s)
		}
		return i
	}}, func(o store.Occurred) {
		for _, r := range by[of[o.Group].tallyKey] {
			if alone[r] != of[o.Group].object {
				delete(alone, r)
			}
		}
	})
	return alone, err
}

// learn takes what the newest events of a row say, and other problems of its object if that has no namespace.
func (r *candidate) learn(t *telling, others map[subject]bool) {
	best := t.best()
	r.telling, r.note = best.newest, best.note
	for o := range others {
		if o.kind == r.kind && o.cluster == r.cluster && o.object == cmp.Or(r.exact, r.named) && !slices.Contains(r.also, o.reason) {
			r.also = append(r.also, o.reason)
		}
	}
	slices.Sort(r.also)
}

// appendNamespaces appends the namespaces of a set that a note names.
func appendNamespaces(to []string, note []byte, of map[string]bool) []string {
	for at := 0; at < len(note); at++ {
		begin := at
		for isNamePart(note, at) {
			at++
		}
		if word := string(note[begin:at]); of[word] && !slices.Contains(to, word) && names(note, word) {
			to = append(to, word)
		}
	}
	return to
}

func (t *telling) add(v *store.View, note string) {
	t.names[string(v.Attributes.Field(event.RegardingName))] = true
	words := wordsOf(note)
	key := strings.Join(words, " ")
	one := t.notes[key]
	if one == nil {
		slices.Sort(words)
		one = &shared{words: len(slices.Compact(words)), newest: new(v.Clone()), note: note}
		t.notes[key] = one
	}
	one.count++
}

// best returns the note that tells most: of many words, and shared by many. Of two that tell as much it is the one
// whose text is first.
func (t *telling) best() (best *shared) {
	most, first := -1.0, ""
	for key, one := range t.notes {
		tells := float64(one.words) * math.Log2(1+float64(one.count))
		if tells > most || tells == most && key < first {
			best, most, first = one, tells, key
		}
	}
	return best
}

// wordsOf returns the words of a note of which a number or a generated name is no part.
func wordsOf(note string) []string {
	const most = 64
	words := strings.FieldsFunc(note[:min(len(note), 4*maxNote)], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' })
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) > 3 && strings.ContainsFunc(w, unicode.IsDigit) })
	return words[:min(len(words), most)]
}
