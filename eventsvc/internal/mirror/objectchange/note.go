package objectchange

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxNote  = 1000 // bytes of a note; Kubernetes allows 1,024
	maxShown = 80   // bytes of a value in a note
)

// Created is the note about an object that is new.
func Created(s *Seen) string {
	author, _ := Author(nil, s, created(s))
	return join3("created", summary(s), author)
}

// Deleted is the note about an object that is gone. Nothing says who deleted it. The times are not zero if the object was deleted
// at an unknown time between them.
func Deleted(s *Seen, from, to time.Time) string {
	return join3("deleted"+between(from, to), summary(s), "")
}

// Changed is the note about changes. The count is how often the fields changed. The times are not zero if that was at an
// unknown time between them.
func Changed(changes []Change, count int32, author string, from, to time.Time) string {
	head := between(from, to)
	if count > 1 {
		head += fmt.Sprintf(" changed %d times in a minute", count)
	}
	if strings.HasPrefix(head, " between") {
		head = " changed" + head
	}
	if head = strings.TrimSpace(head); head != "" {
		head += ": "
	}
	return head + fit(parts(changes), maxNote-len(head)-len(by(author))) + by(author)
}

func between(from, to time.Time) string {
	if from.IsZero() {
		return ""
	}
	return fmt.Sprintf(" between %s and %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
}

func by(author string) string {
	if author == "" {
		return ""
	}
	return "; by " + cut(author, 128)
}

func join3(head string, parts []part, author string) string {
	if len(parts) > 0 {
		head += ": "
	}
	return head + fit(parts, maxNote-len(head)-len(by(author))) + by(author)
}

// created returns a new object's fields as changes.
func created(s *Seen) (changes []Change) {
	for i := range s.Fields {
		changes = append(changes, Change{After: &s.Fields[i]})
	}
	return changes
}

// summary returns what tells most of an object: its images and its size, or the keys of its data.
func summary(s *Seen) (tells []part) {
	var keys []string
	for i := range s.Fields {
		f := &s.Fields[i]
		if key, ok := strings.CutPrefix(f.Path, "data["); ok {
			keys = append(keys, strings.TrimSuffix(key, "]"))
		}
		if w := weigh(f.Path); w <= weightSize && !f.Hidden {
			tells = append(tells, part{w, short(f.Path) + ": " + shown(f.Value, f.Rest)})
		}
	}
	if len(keys) > 0 {
		tells = append(tells, part{weightSpec, "keys " + strings.Join(keys, ", ")})
	}
	slices.SortStableFunc(tells, func(a, b part) int { return a.weight - b.weight })
	return tells
}

// Weights of fields: what explains most failures comes first, and is cut last.
const (
	weightImage = iota
	weightSize
	weightSpec
	weightLabel
	weightAnnotation
)

var weightNames = [...]string{"images", "sizes", "fields", "labels", "annotations"}

func weigh(path string) int {
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case strings.HasPrefix(path, "metadata.annotations"):
		return weightAnnotation
	case strings.HasPrefix(path, "metadata.labels"):
		return weightLabel
	case last == "image":
		return weightImage
	case last == "replicas", last == "minReplicas", last == "maxReplicas", last == "paused", last == "suspend", last == "unschedulable", last == "schedule",
		last == "deletionTimestamp":
		return weightSize
	}
	return weightSpec
}

// part is one thing that a note tells.
type part struct {
	weight int
	text   string
}

// parts says each change in words, the most telling first. What was added or removed as a whole is told once.
func parts(changes []Change) (parts []part) {
	for rest := changes; len(rest) > 0; {
		n, root := whole(changes, rest)
		parts = append(parts, words(rest[:n], root))
		rest = rest[n:]
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.weight - b.weight })
	return parts
}

// whole returns how many of the first changes are fields of one item that was added or removed as a whole, and its path. An item
// is a whole if nothing else below its path has changed, and if it stands in brackets.
func whole(all, rest []Change) (n int, root string) {
	first := rest[0]
	path := first.Path()
	if first.Before != nil && first.After != nil {
		return 1, path
	}
	for at := strings.IndexByte(path, ']'); at >= 0 && at < len(path)-1; {
		prefix := path[:at+1]
		same := func(c Change) bool {
			return (c.Before == nil) == (first.Before == nil) && (c.After == nil) == (first.After == nil)
		}
		below := func(c Change) bool { return strings.HasPrefix(c.Path(), prefix) }
		if !slices.ContainsFunc(all, func(c Change) bool { return below(c) && !same(c) }) {
			for n = 0; n < len(rest) && below(rest[n]); n++ {
			}
			if n > 1 {
				return n, prefix
			}
		}
		next := strings.IndexByte(path[at+1:], ']')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return 1, path
}

// words says in words what became of fields with the same root.
func words(changes []Change, root string) part {
	weight, inside := weigh(root), ""
	for _, c := range changes {
		if f := c.After; f != nil && len(changes) > 1 && !f.Hidden && weigh(f.Path) == weightImage {
			weight, inside = weightImage, " (image "+shown(f.Value, f.Rest)+")"
		}
	}
	c, name := changes[0], short(root)
	switch {
	case len(changes) > 1 && c.Before == nil:
		return part{weight, name + ": added" + inside}
	case c.After == nil && len(changes) > 1:
		return part{weight, name + ": removed"}
	}
	return part{weight, name + ": " + became(c, weight == weightImage)}
}

// became says in words what became of one field.
func became(c Change, image bool) string {
	switch {
	case c.Perhaps:
		return "perhaps changed"
	case c.Before == nil && c.After.Hidden:
		return "added"
	case c.Before == nil:
		return "set to " + shown(c.After.Value, c.After.Rest)
	case c.After == nil && c.Before.Hidden:
		return "removed"
	case c.After == nil:
		return "removed, was " + shown(c.Before.Value, c.Before.Rest)
	case c.Before.Hidden || c.After.Hidden:
		return "changed"
	}
	before, after := c.Before.Value, c.After.Value
	if image {
		before, after = tags(before, after)
	} else {
		before, after = differing(before, after)
	}
	if before == after {
		return "changed" // beyond what is kept
	}
	return shown(before, c.Before.Rest) + " → " + shown(after, c.After.Rest)
}

// short returns a path as it is shown: without spec. before a single name.
func short(path string) string {
	if name, ok := strings.CutPrefix(path, "spec."); ok && !strings.ContainsAny(name, ".[") {
		return name
	}
	return path
}

// tags returns the parts of two images that differ: their tags and digests, if the rest is the same.
func tags(before, after string) (b, a string) {
	nameB, b := cutImage(before)
	nameA, a := cutImage(after)
	if nameB != nameA || b == "" || a == "" {
		return before, after
	}
	return b, a
}

func cutImage(image string) (name, tag string) {
	if name, digest, ok := strings.Cut(image, "@"); ok {
		if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
			return name[:i], name[i+1:] + "@" + cut(digest, len("sha256:")+12)
		}
		return name, cut(digest, len("sha256:")+12)
	}
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i], image[i+1:]
	}
	return image, ""
}

// differing returns two texts without the words at their begin that are the same, if they are too long to be shown whole.
func differing(before, after string) (b, a string) {
	if len(before) <= maxShown && len(after) <= maxShown {
		return before, after
	}
	same := 0
	for i := 0; i < min(len(before), len(after)) && before[i] == after[i]; i++ {
		if before[i] == ' ' {
			same = i + 1
		}
	}
	if same == 0 {
		return before, after
	}
	return "… " + before[same:], "… " + after[same:]
}

// shown returns a value as it is shown.
func shown(value, rest string) string {
	switch {
	case value == "" && rest == "":
		return strconv.Quote("")
	case len(value) > maxShown:
		return cut(value, maxShown) + "…"
	case rest != "":
		return value + "…"
	}
	return value
}

// fit joins parts with semicolons. Those that do not fit are counted.
func fit(parts []part, most int) string {
	var b strings.Builder
	for i, p := range parts {
		left := ""
		if i < len(parts)-1 {
			left = leftOut(parts[i+1:])
		}
		text := p.text
		if i > 0 {
			text = "; " + text
		}
		if b.Len()+len(text)+len(left) > most {
			b.WriteString(leftOut(parts[i:]))
			break
		}
		b.WriteString(text)
	}
	if !utf8.ValidString(b.String()) {
		return strings.ToValidUTF8(b.String(), "")
	}
	return b.String()
}

// leftOut says how many parts are left out, and of which kinds.
func leftOut(parts []part) string {
	var counts [weightAnnotation + 1]int
	for _, p := range parts {
		counts[p.weight]++
	}
	var kinds []string
	for w, n := range counts {
		if n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, weightNames[w]))
		}
	}
	return fmt.Sprintf("; and %d more (%s)", len(parts), strings.Join(kinds, ", "))
}
