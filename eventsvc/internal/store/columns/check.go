package columns

import (
	"errors"
	"fmt"
	"slices"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// Check calls problem with everything of the table that is damaged, also if there is a copy.
func (t *Table) Check(problem func(error)) {
	sealed := func(column, number int) []byte {
		b, err := unseal(salt(t.id, column, number), t.piece(column, number))
		if err != nil {
			problem(fmt.Errorf("column %d, piece %d: %w", column, number, err))
		}
		return b
	}
	for n := range 2 {
		sealed(columnOfMeta, n)
		sealed(columnOfPlaces, n)
	}
	for dict := range numDicts {
		if _, err := parseDictionary(salt(t.id, columnOfDicts+dict, 0), t.piece(columnOfDicts+dict, 0)); err != nil {
			problem(fmt.Errorf("dictionary %d: %w", dict, err))
		}
		sealed(columnOfCopy+dict, 0)
	}
	for chunk := range t.chunks() {
		if t.piece(columnOfPlain, chunk) != nil {
			sealed(columnOfPlain, chunk)
		}
	}
	for column := range numColumns + 1 {
		for first := 0; first < t.chunks(); first += groupChunks {
			t.checkGroup(column, first/groupChunks, first, min(groupChunks, t.chunks()-first), problem)
		}
	}
	if t.piece(columnOfCells, 0) == nil { // a table in memory; of others reading the versions shows it
		return
	}
	const parts = ChunkRows / cellRows
	for chunk := range t.chunks() {
		t.checkGroup(columnOfCells, chunk, chunk*parts, (t.chunkLen(chunk)+cellRows-1)/cellRows, problem)
	}
}

// checkGroup checks a piece of chunks, and both copies of what says where they are.
func (t *Table) checkGroup(column, group, first, chunks int, problem func(error)) {
	piece := t.piece(column, group)
	size := headBytes(chunks)
	if len(piece) < 2*size || !slices.Equal(piece[:size], piece[len(piece)-size:]) {
		problem(fmt.Errorf("column %d, piece %d: where its chunks are: %w", column, group, boltfile.ErrChecksum))
	}
	for chunk := range chunks {
		found, _, err := chunkOf(piece, salt(t.id, column, -1-group), chunks, chunk)
		if err == nil {
			_, err = unseal(salt(t.id, column, first+chunk), found)
		}
		if err != nil {
			problem(errors.Join(fmt.Errorf("column %d, chunk %d: %w", column, first+chunk, err)))
		}
	}
}
