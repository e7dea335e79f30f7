package security

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// Seeds are read by everyone who runs the tests, so they are few and small.
const (
	maxSeeds     = 32
	maxSeedBytes = 4 << 10
)

// TestSeeds: every fuzz target has seeds of its own under testdata/fuzz, and
// there are none without a target.
func TestSeeds(t *testing.T) {
	t.Parallel()
	target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	targets, seeds := map[string]bool{}, map[string]int{}
	for _, name := range tracked(t) {
		switch dir, file := path.Split(name); {
		case strings.Contains(dir, "/testdata/fuzz/"):
			dir = path.Clean(dir)
			seeds[dir]++
			if n := len(read(t, name)); n > maxSeedBytes {
				t.Errorf("%s has %d bytes, want at most %d", name, n, maxSeedBytes)
			}
		case strings.HasSuffix(file, "_test.go"):
			for _, found := range target.FindAllStringSubmatch(read(t, name), -1) {
				targets[path.Join(dir, "testdata/fuzz", found[1])] = true
			}
		}
	}
	for dir := range targets {
		if n := seeds[dir]; n == 0 || n > maxSeeds {
			t.Errorf("%d seeds in %s, want 1 to %d", n, dir, maxSeeds)
		}
	}
	for dir := range seeds {
		if !targets[dir] {
			t.Errorf("%s has seeds of no fuzz target", dir)
		}
	}
	if len(targets) < 10 {
		t.Errorf("only %d fuzz targets found", len(targets))
	}
}
