package objectchange

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Change is a field that differs between two states of an object.
type Change struct {
	Before, After *Field // nil: the field was not there
	// Perhaps is set where it is not known whether the value differs: it is hidden, was last seen by another process, and its
	// manager has written since.
	Perhaps bool
}

// Path returns the path of the field.
func (c Change) Path() string { return cmp.Or(c.After, c.Before).Path }

// Compare returns the fields that differ, ordered by path.
func Compare(before, after *Seen) (changes []Change) {
	b, a := before.Fields, after.Fields
	for len(b) > 0 || len(a) > 0 {
		switch {
		case len(a) == 0 || len(b) > 0 && b[0].Path < a[0].Path:
			changes = append(changes, Change{Before: &b[0]})
			b = b[1:]
		case len(b) == 0 || a[0].Path < b[0].Path:
			changes = append(changes, Change{After: &a[0]})
			a = a[1:]
		default:
			if differs, perhaps := differ(&b[0], &a[0]); differs || perhaps && after.Secrets.After(before.Secrets) {
				changes = append(changes, Change{&b[0], &a[0], !differs})
			}
			b, a = b[1:], a[1:]
		}
	}
	return changes
}

// differ compares the values of a field.
func differ(before, after *Field) (differs, perhaps bool) {
	switch {
	case before.Hidden != after.Hidden:
		return true, false
	case !before.Hidden:
		return before.Value != after.Value || before.Rest != after.Rest, false
	case before.hash == 0 || after.hash == 0:
		return false, true
	}
	return before.hash != after.hash, false
}

// Hashes returns the hashes of the hidden values, in their order. They are good for this process only.
func (s *Seen) Hashes() (hashes []uint64) {
	for i := range s.Fields {
		if s.Fields[i].Hidden {
			hashes = append(hashes, s.Fields[i].hash)
		}
	}
	return slices.Clip(hashes)
}

// SetHashes gives what was read from the file the hashes that this process has of its hidden values, if their number is right.
func (s *Seen) SetHashes(hashes []uint64) {
	for i := range s.Fields {
		if f := &s.Fields[i]; f.Hidden && len(hashes) > 0 {
			f.hash, hashes = hashes[0], hashes[1:]
		}
	}
}

// Covers reports whether all changes are of fields that a series is about.
func Covers(s *Series, changes []Change) bool {
	return !slices.ContainsFunc(changes, func(c Change) bool {
		_, of := s.Before[c.Path()]
		return !of
	})
}

// Extend returns a series with further changes, of which the fields count as one.
func Extend(s Series, changes []Change, at time.Time) Series {
	before := maps.Clone(s.Before)
	if before == nil {
		before = map[string]*Field{}
	}
	for _, c := range changes {
		if _, of := before[c.Path()]; !of {
			before[c.Path()] = c.Before
		}
	}
	s.Before, s.Count = before, s.Count+1
	if at.After(s.Last) {
		s.Last = at
	}
	return s
}

// Since returns the fields of a series as changes from before its first one until now. A field that is as it was is among them.
func Since(s *Series, now *Seen) (changes []Change) {
	for _, path := range slices.Sorted(maps.Keys(s.Before)) {
		c := Change{Before: s.Before[path]}
		if i, found := slices.BinarySearchFunc(now.Fields, path, func(f Field, path string) int { return cmp.Compare(f.Path, path) }); found {
			c.After = &now.Fields[i]
		}
		if c.Before != nil || c.After != nil {
			changes = append(changes, c)
		}
	}
	return changes
}
