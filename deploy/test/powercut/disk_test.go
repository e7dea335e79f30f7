//go:build linux

package powercut

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// files lists the files of a disk with their sizes.
func (d *disk) files() string {
	var all []string
	var walk func(prefix string, dir *inode)
	walk = func(prefix string, dir *inode) {
		for _, name := range slices.Sorted(maps.Keys(dir.entries)) {
			if n := dir.entries[name]; n.isDir() {
				walk(prefix+name+"/", n)
			} else {
				all = append(all, fmt.Sprintf("%s%s=%d", prefix, name, len(n.live)))
			}
		}
	}
	walk("", d.root)
	return strings.Join(all, " ")
}

func (d *disk) place(name string) place { return place{d.find(path.Dir(name)), path.Base(name)} }

// script runs commands on a new disk.
func script(t *testing.T, m mode, commands string) *disk {
	t.Helper()
	d := newDisk(m)
	for command := range strings.SplitSeq(commands, ", ") {
		words := strings.Fields(command)
		name := words[1]
		switch words[0] {
		case "mkdir":
			d.rename(nameChange{inode: d.newInode(syscall.S_IFDIR | 0o755), to: d.place(name)})
		case "write": // makes the file if need be
			if d.find(name) == nil {
				d.rename(nameChange{inode: d.newInode(syscall.S_IFREG | 0o644), to: d.place(name)})
			}
			d.change(d.find(name), write{data: []byte(words[2])})
		case "truncate":
			d.change(d.find(name), write{offset: 2})
		case "fsync":
			d.syncFile(d.find(name), false)
		case "fdatasync":
			d.syncFile(d.find(name), true)
		case "failsync":
			d.loseWrites(d.find(name))
		case "syncdir":
			d.syncDir(d.find(name))
		case "rename":
			d.rename(nameChange{inode: d.find(name), from: d.place(name), to: d.place(words[2])})
		case "link":
			d.rename(nameChange{inode: d.find(name), to: d.place(words[2])})
		case "unlink":
			d.rename(nameChange{inode: d.find(name), from: d.place(name)})
		default:
			t.Fatal(command)
		}
	}
	return d
}

func TestWhatACutLeaves(t *testing.T) {
	for _, c := range []struct {
		commands              string
		strict, ext4, journal string // files with their sizes after a cut that keeps nothing
		live                  string // after one that keeps everything
	}{
		{"write a 12345", "", "", "", "a=5"},
		{"write a 12345, fsync a", "", "a=5", "a=5", "a=5"},
		{"write a 12345, fdatasync a", "", "a=5", "a=5", "a=5"},
		{"write a 12345, syncdir .", "a=0", "a=0", "a=0", "a=5"},
		{"write a 12345, fsync a, syncdir .", "a=5", "a=5", "a=5", "a=5"},
		{"write a 12345, failsync a, fsync a, syncdir .", "a=0", "a=0", "a=0", "a=0"},
		{"write a 12345, fsync a, syncdir ., rename a b", "a=5", "a=5", "a=5", "b=5"},
		{"write a 12345, fsync a, rename a b, syncdir .", "b=5", "b=5", "b=5", "b=5"},
		{"write a 1, fsync a, syncdir ., write t 12345, fsync t, rename t a", "a=1", "a=1 t=5", "a=1 t=5", "a=5"},
		{"write a 12345, fsync a, syncdir ., truncate a", "a=5", "a=5", "a=5", "a=2"},
		{"write a 12345, fsync a, syncdir ., unlink a", "a=5", "a=5", "a=5", ""},
		{"write a 12345, fsync a, link a b, syncdir ., unlink a, syncdir .", "b=5", "b=5", "b=5", "b=5"},
		{"write a 1, write b 12, fsync b", "", "b=2", "a=0 b=2", "a=1 b=2"},
		{"mkdir d, write d/a 1, fsync d/a, syncdir d", "", "d/a=1", "d/a=1", "d/a=1"},
	} {
		for m, want := range map[mode]string{strict: c.strict, ext4: c.ext4, journal: c.journal} {
			d := script(t, m, c.commands)
			if got := d.cut(nothing, nil).files(); got != want {
				t.Errorf("%s, %s: %q is left, want %q", c.commands, m, got, want)
			}
			if got := d.cut(everything, nil).files(); got != c.live {
				t.Errorf("%s, %s: %q is left of everything, want %q", c.commands, m, got, c.live)
			}
		}
	}
}

// TestTornWrite: a torn write leaves sectors of before and after, and no others.
func TestTornWrite(t *testing.T) {
	before, after := strings.Repeat("0", 4096), strings.Repeat("1", 4096)
	d := script(t, ext4, "write a "+before+", fsync a, write a "+after)
	outcomes := map[string]bool{}
	for s := range uint64(300) {
		left := string(d.cut(something, rand.New(rand.NewPCG(s, 0))).find("a").live)
		for at := 0; at < len(left); at += sector {
			if part := left[at : at+sector]; part != before[:sector] && part != after[:sector] {
				t.Fatalf("seed %d: the sector at %d is neither old nor new", s, at)
			}
		}
		outcomes[left] = true
	}
	if len(outcomes) < 8 {
		t.Errorf("only %d outcomes", len(outcomes))
	}
}

// TestOrderOfNames: of two names that were removed a cut may bring back the first
// alone, unless names keep their order.
func TestOrderOfNames(t *testing.T) {
	for m, want := range map[mode]bool{strict: true, ext4: true, journal: false} {
		d := script(t, m, "write a 1, write b 1, fsync a, fsync b, syncdir ., unlink a, unlink b")
		found := false
		for s := range uint64(200) {
			found = found || d.cut(something, rand.New(rand.NewPCG(s, 0))).files() == "a=1"
		}
		if found != want {
			t.Errorf("%s: the first alone is back: %v, want %v", m, found, want)
		}
	}
}
