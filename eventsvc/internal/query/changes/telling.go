package changes

import (
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
	reads int
}

// shared is a note that several events have.
type shared struct {
	count, words int
	newest       *store.Record
	note         string
}

// tell finds for each row the note that tells most, and its object if all its events are about one.
func (c *comparison) tell(ctx context.Context, rows []*candidate) error {
	by := map[tallyKey][]*candidate{}
	for _, r := range rows {
		for _, s := range r.tallies {
			by[s.tallyKey] = append(by[s.tallyKey], r)
		}
	}
	told := map[*candidate]*telling{}
	err := c.notes(ctx, func(k tallyKey) bool { return by[k] != nil }, func(v *store.View, note []byte) {
		d := event.DimensionsOf(v.Namespace, v.Attributes)
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
		}
	})
	for r, t := range told {
		best := t.best()
		r.telling, r.note = best.newest, best.note
		if all := t.reads < notesOfSeries; all && len(t.names) == 1 && r.object == "" && r.namespace != "" && r.way != Failing {
			for name := range t.names {
				r.named = name
			}
		}
	}
	return err
}

func (t *telling) add(v *store.View, note string) {
	t.reads++
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
