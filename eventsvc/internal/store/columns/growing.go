package columns

import "slices"

// A growing is the rows that a builder has so far. A table reads them where they are, and the builder only appends
// behind them.
type growing struct {
	numbers [numColumns][]uint64
	words   []uint64
	wordEnd []int
	plain   [][]byte
	places  []place
}

// Growing returns the rows so far as a table, which costs the same however many there are. It stays as it is while the
// builder grows, and is for scans only: it has no versions.
func (b *Builder) Growing() *Table {
	g := &growing{numbers: b.numbers, words: b.words, wordEnd: b.wordEnd, plain: slices.Clone(b.plain), places: slices.Clone(b.places)}
	for i := range g.places {
		g.places[i].chunks = slices.Clone(g.places[i].chunks)
	}
	t := &Table{
		Span: Span{rows: b.rows, lights: b.lights, marked: b.marked, from: b.first, to: b.latest, held: b.held},
		id:   b.last, base: b.base, after: b.after, plains: b.plains, growing: g,
	}
	for dict := range b.dicts {
		t.dicts[dict] = &dictionary{b.dicts[dict].text, b.dicts[dict].ends}
	}
	return t
}

// chunk returns the numbers of a chunk of a column.
func (g *growing) chunk(column, chunk int) []uint64 {
	from, to := chunk*ChunkRows, min(len(g.wordEnd), (chunk+1)*ChunkRows)
	if column < numColumns {
		return g.numbers[column][from:to]
	}
	return g.words[wordsBefore(g.wordEnd, from):wordsBefore(g.wordEnd, to)]
}

// wordsBefore returns how many words the rows before one have.
func wordsBefore(wordEnd []int, row int) int {
	if row == 0 {
		return 0
	}
	return wordEnd[row-1]
}
