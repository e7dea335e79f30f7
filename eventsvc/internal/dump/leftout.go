package dump

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tidings.example/eventsvc/internal/event"
)

// Report says what was read and what was not.
type Report struct {
	Events   int64     // passed on
	From, To time.Time // when the first and the last of them were observed
	Failed   int64     // events, or parts that may have some, which were not passed on
	Current  bool      // a bookmark was found: without events, an export says that there is nothing newer
	Problems []string  // why, with the place, of the first ones

	mu      sync.Mutex
	skipped map[string]int64 // by kind
	notes   map[string]*note
	files   map[string]int64 // those that are no dumps, by what they are
	without []string         // files without events, if others were named beside them
}

// note is something that was not kept, or that somebody should know.
type note struct {
	first Position
	n     int64
}

const (
	maxProblems = 20  // so many are told one by one
	maxNotes    = 100 // different ones
	maxKinds    = 200
)

func newReport() *Report {
	return &Report{skipped: map[string]int64{}, notes: map[string]*note{}, files: map[string]int64{}}
}

func (r *Report) events(items []Item) {
	for _, it := range items {
		seen := event.LastSeen(it.Event)
		if r.From.IsZero() || seen.Before(r.From) {
			r.From = seen
		}
		if seen.After(r.To) {
			r.To = seen
		}
	}
	r.Events += int64(len(items))
}

func (r *Report) problem(at Position, name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Failed++; len(r.Problems) >= maxProblems {
		return
	}
	text := at.String() + ": "
	if name != "" {
		text += fmt.Sprintf("%.300s: ", name)
	}
	r.Problems = append(r.Problems, text+fmt.Sprintf("%.400s", err))
}

// note adds what is true of an event, or of a file.
func (r *Report) note(at Position, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.notes[text]
	if n == nil {
		if len(r.notes) >= maxNotes {
			return
		}
		n = &note{first: at}
		r.notes[text] = n
	}
	n.n++
}

// Noted reports whether anything was not kept.
func (r *Report) Noted() bool { return len(r.notes) > 0 }

// skip counts objects that are no events.
func (r *Report) skip(kind string, n int64) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.skipped[kind]; !known && len(r.skipped) >= maxKinds {
		kind = otherKinds
	}
	r.skipped[kind] += n
}

// Kinds of what has none.
const (
	otherKinds = "other object"
	noKind     = "object without a kind"
)

// file counts a file that is no dump.
func (r *Report) file(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[what]++
}

// empty adds a file without events.
func (r *Report) empty(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.without = append(r.without, name)
}

// Lines say what was left out, and why: one line each.
func (r *Report) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := slices.Clone(r.Problems)
	if more := r.Failed - int64(len(r.Problems)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more like these", more))
	}
	for _, text := range slices.Sorted(maps.Keys(r.notes)) {
		n := r.notes[text]
		times := ""
		if n.n > 1 {
			times = fmt.Sprintf(" and %d more", n.n-1)
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s", n.first, times, text))
	}
	if len(r.skipped) > 0 {
		kinds := slices.SortedFunc(maps.Keys(r.skipped), func(a, b string) int {
			return cmp.Or(cmp.Compare(r.skipped[b], r.skipped[a]), cmp.Compare(a, b))
		})
		var parts []string
		for _, kind := range kinds {
			parts = append(parts, fmt.Sprintf("%d %s", r.skipped[kind], plural(kind, r.skipped[kind])))
		}
		lines = append(lines, strings.Join(parts, ", ")+": not events")
	}
	if n := len(r.without); n > maxProblems {
		lines = append(lines, fmt.Sprintf("no events are in %s and %d more files", strings.Join(r.without[:maxProblems], ", "), n-maxProblems))
	} else if n > 0 {
		lines = append(lines, "no events are in "+strings.Join(r.without, ", "))
	}
	for _, what := range slices.Sorted(maps.Keys(r.files)) {
		n := r.files[what]
		lines = append(lines, fmt.Sprintf("%d %s: %s", n, plural("file", n), what))
	}
	return lines
}

// plural is the word for n of a kind.
func plural(kind string, n int64) string {
	switch {
	case n == 1:
		return kind
	case strings.Contains(kind, ofVersion):
		kind, version, _ := strings.Cut(kind, ofVersion)
		return plural(kind, n) + ofVersion + version
	case kind == noKind:
		return "objects without a kind"
	case strings.HasSuffix(kind, "y") && !strings.HasSuffix(kind, "ay") && !strings.HasSuffix(kind, "ey"):
		return kind[:len(kind)-1] + "ies"
	case strings.HasSuffix(kind, "points"), strings.HasSuffix(kind, "Metrics"):
		return kind
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"):
		return kind + "es"
	default:
		return kind + "s"
	}
}
