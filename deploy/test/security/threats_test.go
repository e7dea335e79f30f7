package security

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// tracked returns the files of the repository, without those that git ignores. Without git, as in an unpacked tarball,
// it returns all files but those in the directories for builds and data.
func tracked(t *testing.T) []string {
	t.Helper()
	var names, files []string
	if list, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output(); err == nil {
		names = strings.Split(string(list), "\x00")
	} else if names, err = unpacked(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(root, name))
		if err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	if len(files) < 100 {
		t.Fatalf("only %d files are tracked", len(files))
	}
	return files
}

func unpacked() (names []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "bin" || name == "var"):
			return fs.SkipDir
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestThreats: every threat in the security policy has an answer and at least
// one test, fuzz target or row of the benchmark, all of which exist.
func TestThreats(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	row := regexp.MustCompile(`"(attack/[a-z0-9/-]+)"`)
	for _, name := range tracked(t) {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			for _, found := range function.FindAllStringSubmatch(read(t, name), -1) {
				known[found[1]] = true
			}
		case strings.HasPrefix(name, "deploy/test/bench/rows_"):
			for _, found := range row.FindAllStringSubmatch(read(t, name), -1) {
				known[found[1]] = true
			}
		}
	}
	threats := 0
	named := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(read(t, ".github/SECURITY.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || strings.TrimSpace(cells[0]) == "threat" {
			continue
		}
		threats++
		tests := named.FindAllStringSubmatch(cells[2], -1)
		if len(tests) == 0 || strings.TrimSpace(cells[1]) == "" {
			t.Errorf("no answer or no test: %s", line)
		}
		for _, test := range tests {
			if !known[test[1]] {
				t.Errorf("there is no %s, named for: %s", test[1], cells[0])
			}
		}
	}
	if threats < 20 {
		t.Errorf("only %d threats found", threats)
	}
}
