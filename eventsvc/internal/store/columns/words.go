package columns

import (
	"bytes"

	"tidings.example/eventsvc/internal/event"
)

// What the template of a note says of a word that is searched.
const (
	never  = iota
	always // it is in the template itself
	maybe  // the words of the note decide
)

// A wordPlan is what the dictionaries of a table say of a word that is searched, which may be of several words and what
// is between them.
type wordPlan struct {
	piece  []byte // folded
	states []uint8
	ways   [][]way     // by template, if it is maybe: one of these has to hold
	other  [3]*codeSet // reasons, objects and nodes that have it; nil: none
	any    bool
}

// The columns of other.
var otherColumns = [3]int{colReason, colObject, colNode}

// A way is what the words of a note have to be so that the piece is there, each by the number of its hole.
type way []struct {
	hole  int
	words *codeSet
}

// A wordPlanner makes the plan of one piece.
type wordPlanner struct {
	*wordPlan
	words *dictionary          // folded
	sets  map[wordKey]*codeSet // those that were asked for
	way   way
}

// wordKey is a part of the piece and where in a word it has to be.
type wordKey struct {
	from, to   int
	begin, end bool
}

// planWord makes the plan of a piece.
func (t *Table) planWord(piece []byte, note bool) (*wordPlan, error) {
	templates, err := t.folded(dictTemplate)
	if err != nil {
		return nil, err
	}
	words, err := t.folded(dictWords)
	if err != nil {
		return nil, err
	}
	p := &wordPlan{piece: piece, states: make([]uint8, templates.len()), ways: make([][]way, templates.len())}
	if bytes.IndexByte(piece, hole) < 0 && bytes.IndexByte(piece, plainMark) < 0 { // else only plain notes can have it
		templates.having(piece, func(code int) { p.states[code] = always })
	}
	w := &wordPlanner{wordPlan: p, words: words, sets: map[wordKey]*codeSet{}}
	for code := range p.states {
		switch {
		case code == plainTemplate:
			p.states[code] = never
			if t.plains > 0 {
				p.states[code] = maybe
			}
		case p.states[code] == never:
			w.template(code, bytes.Split(templates.at(code), []byte{hole}))
		}
		p.any = p.any || p.states[code] != never
	}
	return p, p.others(t, note)
}

// others finds the reasons, objects and nodes that have the piece.
func (p *wordPlan) others(t *Table, note bool) error {
	if note {
		return nil
	}
	for i, column := range otherColumns {
		d, err := t.folded(column)
		if err != nil {
			return err
		}
		set := &codeSet{has: make([]bool, d.len())}
		d.having(p.piece, set.add)
		if set.n > 0 {
			p.other[i], p.any = set, true
		}
	}
	return nil
}

// template finds the ways in which words of a template can have some of the piece: the first of them is in each of the
// holes, and has what begins at each of the words of the piece. parts are what is between the holes.
func (p *wordPlanner) template(code int, parts [][]byte) {
	for hole := range len(parts) - 1 {
		for at := range p.piece {
			if !event.IsWordByte(p.piece[at]) || at > 0 && event.IsWordByte(p.piece[at-1]) || !bytes.HasSuffix(parts[hole], p.piece[:at]) {
				continue
			}
			if p.way = nil; p.from(parts, hole, at) {
				p.states[code] = maybe
				p.ways[code] = append(p.ways[code], p.way)
			}
		}
	}
}

// from goes on with a word of the piece in a hole. It reports false if that cannot be.
func (p *wordPlanner) from(parts [][]byte, hole, at int) bool {
	for {
		end := at
		for end < len(p.piece) && event.IsWordByte(p.piece[end]) {
			end++
		}
		set := p.having(wordKey{at, end, at > 0, end < len(p.piece)})
		if end == at || set.n == 0 {
			return false
		}
		p.way = append(p.way, struct {
			hole  int
			words *codeSet
		}{hole, set})
		rest := p.piece[end:]
		hole++
		between := parts[hole]
		if len(rest) <= len(between) {
			return bytes.HasPrefix(between, rest)
		}
		if !bytes.HasPrefix(rest, between) || hole == len(parts)-1 || len(between) == 0 {
			return false
		}
		at = end + len(between)
	}
}

// having returns the words that have a part of the piece, at their beginning or their end if so.
func (p *wordPlanner) having(k wordKey) *codeSet {
	set := p.sets[k]
	if set != nil {
		return set
	}
	set = &codeSet{has: make([]bool, p.words.len())}
	part := p.piece[k.from:k.to]
	p.words.having(part, func(code int) {
		text := p.words.at(code)
		if (!k.begin || bytes.HasPrefix(text, part)) && (!k.end || bytes.HasSuffix(text, part)) && (!k.begin || !k.end || len(text) == len(part)) {
			set.add(code)
		}
	})
	p.sets[k] = set
	return set
}
