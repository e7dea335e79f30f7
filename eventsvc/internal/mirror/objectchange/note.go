package objectchange

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	maxNote  = 1000 // bytes of a note; Kubernetes allows 1,024
	maxShown = 80   // bytes of a value in a note
)

// Created is the note about an object that is new.
func Created(s *Seen) string {
	author, _ := Author(nil, s, nil)
	return note("created", author, summary(s))
}

// Deleted is the note about an object that is gone. Nothing says who deleted it. The times are not zero if the object
// was deleted at an unknown time between them.
func Deleted(s *Seen, from, to time.Time) string {
	return note("deleted"+between(from, to), "", summary(s))
}

// Changed is the note about changes of an object as it is now. The count is how often the fields changed. The times are
// not zero if that was at an unknown time between them.
func Changed(now *Seen, changes []Change, count int32, author string, from, to time.Time) string {
	head := between(from, to)
	if count > 1 {
		head = fmt.Sprintf(" %d times in a minute", count)
	}
	if head != "" {
		head = "changed" + head
	}
	return note(head, author, parts(now, changes))
}

func between(from, to time.Time) string {
	if from.IsZero() {
		return ""
	}
	return fmt.Sprintf(" between %s and %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
}

// note joins what an event tells, the most telling first. What does not fit is counted.
func note(head, author string, all []part) string {
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(a.weight, b.weight) })
	if head != "" && len(all) > 0 {
		head += ": "
	}
	if author != "" {
		author = "; by " + cut(author, 128)
	}
	for i, p := range all {
		text, left := p.text, ""
		if i > 0 {
			text = "; " + text
		}
		if i < len(all)-1 {
			left = leftOut(all[i+1:])
		}
		if len(head)+len(text)+len(left)+len(author) > maxNote {
			head += leftOut(all[i:])
			break
		}
		head += text
	}
	return strings.ToValidUTF8(head+author, "")
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

// summary returns what tells most of an object: its images and its size, or the keys of its data.
func summary(s *Seen) (tells []part) {
	var keys []string
	for _, path := range slices.Sorted(maps.Keys(s.Fields)) {
		if key, ok := strings.CutPrefix(path, "data["); ok {
			keys = append(keys, strings.TrimSuffix(key, "]"))
		}
		if w := weigh(path); w <= weightSize && s.Fields[path] != hidden {
			tells = append(tells, part{w, short(path) + ": " + shown(s.Fields[path])})
		}
	}
	if len(keys) > 0 {
		tells = append(tells, part{weightSpec, "keys " + strings.Join(keys, ", ")})
	}
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

// parts says each change in words. An item of a list or a key of which several fields, and all of them, were added or
// removed is told once.
func parts(now *Seen, changes []Change) (parts []part) {
	var added, removed []string
	for _, c := range changes {
		switch "" {
		case c.Before:
			added = append(added, c.Path)
		case c.After:
			removed = append(removed, c.Path)
		}
	}
	there, told := slices.Sorted(maps.Keys(now.Fields)), map[string]bool{}
	for _, c := range changes {
		root := c.Path
		for i := 0; i < len(root) && (c.Before == "" || c.After == ""); i++ {
			if root[i] != ']' {
				continue
			}
			came, went, is := below(added, root[:i+1]), below(removed, root[:i+1]), below(there, root[:i+1])
			if came > 1 && came == is && went == 0 || went > 1 && is == 0 {
				root = root[:i+1]
			}
		}
		if !told[root] {
			told[root] = true
			parts = append(parts, words(now, root, c))
		}
	}
	return parts
}

// below returns how many of sorted paths begin with that of an item.
func below(paths []string, item string) int {
	from, _ := slices.BinarySearch(paths, item)
	to, _ := slices.BinarySearch(paths, item+"\xff")
	return to - from
}

// words says in words what became of a field, or of an item that has it and was added or removed.
func words(now *Seen, root string, c Change) part {
	weight, whole := weigh(root), root != c.Path
	if image := now.Fields[root+".image"]; whole && c.Before == "" && image != "" && image != hidden {
		return part{weightImage, short(root) + ": added (image " + shown(image) + ")"}
	}
	return part{weight, short(root) + ": " + became(c, whole, weight)}
}

// became says what became of a field, or of an item as a whole.
func became(c Change, whole bool, weight int) string {
	before, after := c.Before, c.After
	differ := differing
	if weight == weightImage {
		differ = tags
	}
	switch {
	case c.Perhaps:
		return "perhaps changed"
	case before == "" && (whole || after == hidden):
		return "added"
	case before == "":
		return "set to " + shown(after)
	case after == "" && (whole || before == hidden):
		return "removed"
	case after == "":
		return "removed, was " + shown(before)
	case before == hidden, after == hidden:
		return "changed"
	}
	before, after = differ(before, after)
	if before, after = shown(before), shown(after); before == after {
		return "changed" // beyond what is kept
	}
	return before + " → " + after
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
	at := strings.LastIndexByte(image, '/') + 1
	of := strings.IndexAny(image[at:], ":@")
	if of < 0 {
		return image, ""
	}
	tag, digest, _ := strings.Cut(image[at+of+1:], "sha256:")
	if digest != "" {
		tag += "sha256:" + cut(digest, 12)
	}
	return image[:at+of], tag
}

// differing returns two texts without the words at their begin that are the same, if they are too long to be shown
// whole.
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
func shown(value string) string {
	text, _, more := strings.Cut(value, andSo)
	if more || len(text) > maxShown {
		return cut(text, maxShown) + "…"
	}
	return text
}
