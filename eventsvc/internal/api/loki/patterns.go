package loki

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/logql"
	"tidings.example/eventsvc/internal/store"
)

// maxPatterns is the most patterns of an answer.
const maxPatterns = 300

// lokiPlaceholder is the only one that Loki has.
const lokiPlaceholder = "<_>"

var placeholders = regexp.MustCompile("<[a-z]+>")

// patternCounts says how often a pattern was observed in each step, by the number of the step.
type patternCounts struct {
	text  string
	total int64
	steps map[int64]int64
}

// patterns serves /patterns: what the lines of streams have in common, most frequent first, and how often they were
// observed in each step, as far as their events are held.
func (a *API) patterns(r *request) (answer, error) {
	in, err := r.times()
	if err != nil {
		return nil, err
	}
	l, err := r.selector(logql.ParseLog) // what is behind the selector does not matter
	if err != nil {
		return nil, err
	}
	step, err := r.step(in)
	if err != nil {
		return nil, err
	}
	var all []*patternCounts
	ids, room := map[string]int{}, share{most: maxInner}
	number := func(d event.Dimensions) (int, error) {
		text := placeholders.ReplaceAllString(d.Pattern, lokiPlaceholder)
		if event.IsCut(d.Pattern) {
			text = strings.TrimSuffix(text, "…") + lokiPlaceholder
		}
		if d.Pattern = ""; !l.Selects(r.turns, labelOf(&d)) {
			return -1, nil
		}
		id, known := ids[text]
		if known {
			return id, nil
		}
		if !room.take(d.Namespace) {
			r.warn("there are more than %d patterns: some of the namespaces that have most are left out", maxInner)
			return -1, nil
		}
		ids[text] = len(all)
		all = append(all, &patternCounts{text: text, steps: map[int64]int64{}})
		return len(all) - 1, r.grow(len(text) + patternBytes)
	}
	s := a.streams(r, maySelect(l), number)
	s.by = append(slices.Clone(event.DimensionNames), event.PatternDimension)
	seconds := max(1, int64(step.Seconds()))
	var full error
	err = a.occurred(s, in, func(o store.Occurred) {
		p, at := all[o.Group], o.Second/seconds
		if p.steps[at] == 0 && full == nil {
			full = r.grow(patternCell)
		}
		if full == nil {
			p.steps[at] += o.Count
			p.total += o.Count
		}
	})
	if err := cmp.Or(err, full); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *patternCounts) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.text, b.text))
	})
	all = slices.DeleteFunc(all, func(p *patternCounts) bool { return p.total == 0 })
	all = all[:min(len(all), maxPatterns)]
	return r.success(func(b []byte) []byte {
		return appendList(b, len(all), func(b []byte, i int) []byte { return all[i].append(b, seconds) })
	}), nil
}

// What a pattern takes in memory beside its text, and a count of it.
const (
	patternBytes = 256
	patternCell  = 64
)

// append appends a pattern with its samples, which have the second at which their step begins.
func (p *patternCounts) append(b []byte, seconds int64) []byte {
	b = append(appendJSON(append(b, `{"pattern":`...), p.text), `,"samples":`...)
	at := slices.Sorted(maps.Keys(p.steps))
	b = appendList(b, len(at), func(b []byte, i int) []byte {
		b = append(strconv.AppendInt(append(b, '['), at[i]*seconds, 10), ',')
		return append(strconv.AppendInt(b, p.steps[at[i]], 10), ']')
	})
	return append(b, '}')
}
