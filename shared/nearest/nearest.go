// Package nearest finds the known name that a misspelt one probably stands for, for error messages. Its function is
// safe for concurrent use and does not know what is named.
package nearest

import (
	"iter"
	"strings"
)

// maxLength is the length of the longest name that is compared. Longer ones are no mistyped names.
const maxLength = 64

// Name returns the known name with the fewest edits to name, in upper or lower case, or "" if none is close.
func Name(name string, known iter.Seq[string]) string {
	if len(name) > maxLength {
		return ""
	}
	// A transposition is two edits. Of a short name something must be left.
	best, least := "", min(max(2, (len(name)+1)/3), len(name)-1)+1
	for candidate := range known {
		d := edits(strings.ToLower(name), strings.ToLower(candidate))
		if d < least || d == least && candidate < best {
			best, least = candidate, d
		}
	}
	return best
}

// edits returns how many bytes have to be inserted, deleted or replaced to turn a into b (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, replaced)
		}
	}
	return row[len(b)]
}
