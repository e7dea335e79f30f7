package security

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pagesThatNameCode are the pages whose tables end in a file and a function, and how many such rows each has at least.
var pagesThatNameCode = map[string]int{".github/WALKTHROUGH.md": 25}

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	namesFiles = regexp.MustCompile("^ `[^`]+`(, `[^`]+`)* $")
)

// TestNamedCodeExists: every file in the second cell of a three-cell table row exists, and one of the row's files
// declares each function or type in the third.
func TestNamedCodeExists(t *testing.T) {
	t.Parallel()
	for page, least := range pagesThatNameCode {
		rows := 0
		for n, line := range strings.Split(read(t, page), "\n") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			if !strings.HasPrefix(line, "|") || len(cells) != 3 || !namesFiles.MatchString(cells[1]) {
				continue
			}
			rows++
			if err := checkRow(t, quotedIn(cells[1]), quotedIn(cells[2])); err != nil {
				t.Errorf("%s:%d: %v", page, n+1, err)
			}
		}
		if rows < least {
			t.Errorf("%s: %d rows name a file, want at least %d: a row is | what | `file` | `function` |", page, rows, least)
		}
	}
}

func quotedIn(cell string) (names []string) {
	for _, found := range quoted.FindAllStringSubmatch(cell, -1) {
		names = append(names, found[1])
	}
	return names
}

// checkRow returns an error that says how to correct the row.
func checkRow(t *testing.T, files, names []string) error {
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			return fmt.Errorf("there is no %s, which is said to have %s: now in %s. Put the new path into the row, or remove the row if the step is gone",
				file, strings.Join(names, ", "), declaredIn(t, names))
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(files, func(file string) bool { return declares(t, file, name) }) {
			return fmt.Errorf("%s does not declare %s: now in %s. Put the new path or name into the row, or remove the row if the step is gone",
				strings.Join(files, ", "), name, declaredIn(t, []string{name}))
		}
	}
	return nil
}

// declares reports whether a Go file declares Func, Type or Type.Method.
func declares(t *testing.T, file, name string) bool {
	declaration := `(?:func|type) ` + name + `\b`
	if receiver, method, ok := strings.Cut(name, "."); ok {
		declaration = `func \(\w* ?\*?` + receiver + `(?:\[\w+\])?\) ` + method + `\b`
	}
	return regexp.MustCompile(`(?m)^` + declaration).MatchString(read(t, file))
}

// declaredIn lists the Go files that declare one of the names or, if there is none, a method of another type with that
// name.
func declaredIn(t *testing.T, names []string) string {
	var exactly, nearly []string
	for _, file := range tracked(t) {
		if !strings.HasSuffix(file, ".go") {
			continue
		}
		for _, name := range names {
			_, method, _ := strings.Cut(name, ".")
			if declares(t, file, name) {
				exactly = append(exactly, file)
			} else if method != "" && declares(t, file, `\w+.`+method) {
				nearly = append(nearly, file)
			}
		}
	}
	switch {
	case len(exactly) > 0:
		return strings.Join(slices.Compact(exactly), ", ")
	case len(nearly) > 0 && len(nearly) <= 5:
		return "perhaps " + strings.Join(slices.Compact(nearly), ", ")
	}
	return "no file under this name"
}
