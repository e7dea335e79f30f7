package columns

import (
	"tidings.example/eventsvc/internal/event"
)

// patterns are the patterns of notes that a scan has come upon, by codes that it gives them. What notes have in common
// is found once for each template and the classes of its words.
type patterns struct {
	first   uint64 // the code of the first one that is kept: others were before, and no row of the chunk has one
	texts   []string
	bytes   int
	codes   map[string]uint64
	shapes  map[patternShape]uint64
	classes []uint8 // by word, 1 beyond the class; 0: not known
	rows    []uint64
	of      []event.WordClass
}

// patternShape is a template and the classes of its words.
type patternShape struct{ template, classes uint64 }

const (
	// patternBytes is about how many bytes of patterns a scan keeps.
	patternBytes = 512 << 10
	classBits    = 3
)

// text returns the pattern of a code of the chunk.
func (p *patterns) text(code uint64) string { return p.texts[code-p.first] }

// code returns the code of a pattern.
func (p *patterns) code(text string) uint64 {
	code, ok := p.codes[text]
	if !ok {
		code = p.first + uint64(len(p.texts))
		p.codes[text], p.texts, p.bytes = code, append(p.texts, text), p.bytes+len(text)
	}
	return code
}

// patterns returns the codes of the patterns of rows of the chunk. They are valid until it is called for another chunk.
func (s *Scan) patterns(of *rowSet) ([]uint64, error) {
	p := &s.pattern
	words, err := s.table.dict(dictWords)
	if err != nil {
		return nil, err
	}
	if p.classes == nil || p.bytes > patternBytes {
		p.first, p.texts, p.bytes = p.first+uint64(len(p.texts)), nil, 0
		p.codes, p.shapes = map[string]uint64{}, map[patternShape]uint64{}
		p.classes = make([]uint8, words.len())
		p.rows = make([]uint64, ChunkRows)
	}
	templates, err := s.column(colTemplate, of)
	if err != nil {
		return nil, err
	}
	for row := range of.all {
		if templates[row] == plainTemplate {
			text, err := s.plainPattern(row)
			if err != nil {
				return nil, err
			}
			p.rows[row] = p.code(text)
			continue
		}
		if p.rows[row], err = s.patternOf(row, templates[row], words); err != nil {
			return nil, err
		}
	}
	return p.rows, nil
}

// patternOf returns the code of the pattern of a row with a template.
func (s *Scan) patternOf(row int, template uint64, words *dictionary) (uint64, error) {
	p := &s.pattern
	shape := patternShape{template: template}
	p.of = p.of[:0]
	begin, end, err := s.wordsOf(row)
	if err != nil {
		return 0, err
	}
	for at := begin; at < end; at++ {
		word, err := s.wordAt(at)
		if err != nil {
			return 0, err
		}
		if p.classes[word] == 0 {
			p.classes[word] = 1 + uint8(event.ClassOf(words.at(int(word))))
		}
		class := p.classes[word] - 1
		shape.classes = shape.classes<<classBits | uint64(class)
		p.of = append(p.of, event.WordClass(class))
	}
	short := end-begin <= 64/classBits
	if code, ok := p.shapes[shape]; ok && short {
		return code, nil
	}
	templates, err := s.table.dict(dictTemplate)
	if err != nil {
		return 0, err
	}
	code := p.code(event.PatternOf(templates.at(int(template)), p.of))
	if short {
		p.shapes[shape] = code
	}
	return code, nil
}

// plainPattern returns the pattern of the note of a row without a template.
func (s *Scan) plainPattern(row int) (string, error) {
	note, err := s.plainNote(row)
	if err != nil {
		return "", err
	}
	var of [2][]byte
	for i, column := range []int{colObject, colNamespace} {
		codes, err := s.whole(column)
		if err != nil {
			return "", err
		}
		texts, err := s.table.dict(column)
		if err != nil {
			return "", err
		}
		of[i] = texts.at(int(codes[row]))
	}
	return event.Pattern(note, of[0], of[1]), nil
}

// ofPattern leaves out rows whose patterns do not fit.
func (s *Scan) ofPattern(n *node, rows *rowSet) error {
	codes, err := s.patterns(rows)
	if err != nil {
		return err
	}
	for row := range rows.all {
		fits, known := n.patterns[codes[row]]
		if !known {
			fits = n.filter.Fits(s.pattern.text(codes[row]))
			n.patterns[codes[row]] = fits
		}
		if !fits {
			rows.remove(row)
		}
	}
	return nil
}
