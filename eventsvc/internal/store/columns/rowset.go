package columns

import "math/bits"

// A rowSet is rows of a chunk, a bit each.
type rowSet [ChunkRows / 64]uint64

// fill adds the first n rows.
func (s *rowSet) fill(n int) {
	for i := range s {
		s[i] = ^uint64(0)
		if n -= 64; n < 0 {
			s[i] >>= min(-n, 64)
		}
	}
}

func (s *rowSet) add(row int) { s[row/64] |= 1 << (row % 64) }

func (s *rowSet) remove(row int) { s[row/64] &^= 1 << (row % 64) }

func (s *rowSet) empty() bool { return *s == rowSet{} }

func (s *rowSet) len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// less removes the rows of another set.
func (s *rowSet) less(other *rowSet) {
	for i := range s {
		s[i] &^= other[i]
	}
}

// join adds the rows of another set.
func (s *rowSet) join(other *rowSet) {
	for i := range s {
		s[i] |= other[i]
	}
}

// all iterates over the rows, in their order. Those that are removed meanwhile may come, too.
func (s *rowSet) all(yield func(row int) bool) {
	for i, word := range s {
		for ; word > 0; word &= word - 1 {
			if !yield(i*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// keep removes the rows whose numbers are not in a set. Of rows that are not in s it does not look at the numbers.
func (s *rowSet) keep(numbers []uint64, set []bool) {
	for i, word := range s {
		if bits.OnesCount64(word) < 32 {
			for ; word > 0; word &= word - 1 {
				if row := i*64 + bits.TrailingZeros64(word); !set[numbers[row]] {
					s.remove(row)
				}
			}
			continue
		}
		kept := uint64(0)
		for row, n := range numbers[i*64 : min(len(numbers), i*64+64)] {
			bit := uint64(0)
			if n < uint64(len(set)) && set[n] {
				bit = 1
			}
			kept |= bit << row
		}
		s[i] &= kept
	}
}
