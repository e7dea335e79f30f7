package columns

import (
	"math/rand/v2"
	"testing"
)

// TestEqual: numbers of any width are compared as those that were read one by one.
func TestEqual(t *testing.T) {
	t.Parallel()
	random := rng(t)
	for range 4_000 {
		width, length := random.IntN(64), 1+random.IntN(ChunkRows)
		least := random.Uint64N(3)
		numbers := make([]uint64, length)
		for i := range numbers {
			if numbers[i] = least; width > 0 && random.IntN(4) > 0 {
				numbers[i] += random.Uint64N(1 << width)
			}
		}
		packed := appendChunk(nil, 1, numbers)
		c, err := parseChunk(1, packed, append(packed, make([]byte, 8)...), length) // the heads of a piece are behind the last chunk
		if err != nil {
			t.Fatal(err)
		}
		var rows, want rowSet
		for row := range length {
			if random.IntN(8) > 0 {
				rows.add(row)
			}
		}
		n := numbers[random.IntN(length)] + uint64(random.IntN(8)/7)
		for row := range rows.all {
			if numbers[row] == n {
				want.add(row)
			}
		}
		if c.equal(n, &rows); rows != want {
			t.Fatalf("width %d: %d in %v: %v, want %v", width, n, numbers, rows, want)
		}
	}
}

// BenchmarkEqual finds a number among those of a chunk.
func BenchmarkEqual(b *testing.B) {
	for _, most := range []uint64{30, 10_000} {
		numbers := make([]uint64, ChunkRows)
		for i := range numbers {
			numbers[i] = rand.Uint64N(most)
		}
		packed := appendChunk(nil, 1, numbers)
		c, _ := parseChunk(1, packed, packed, ChunkRows)
		var rows rowSet
		b.Run("", func(b *testing.B) {
			for b.Loop() {
				rows.fill(ChunkRows)
				c.equal(numbers[100], &rows)
			}
		})
	}
}
