package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPage: every promise has its row, and each row names tests that there are.
func TestPage(t *testing.T) {
	t.Parallel()
	const root = "../../.." // of the module
	file := filepath.Join(root, page)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	promises := read(text)
	if len(promises) != 22 {
		t.Errorf("%d promises, want 22", len(promises))
	}
	for i, p := range promises {
		if p.id != fmt.Sprintf("R%d", i+1) || len(p.tests) == 0 {
			t.Errorf("row %d is of %s and names %d tests", i+1, p.id, len(p.tests))
		}
		for _, link := range p.tests {
			name, sub, _ := strings.Cut(link.name, "/")
			source, err := os.ReadFile(filepath.Join(filepath.Dir(file), link.file))
			if err != nil || !bytes.Contains(source, []byte("func "+name+"(t *testing.T)")) {
				t.Errorf("%s: there is no %s in %s (%v)", p.id, name, link.file, err)
			}
			if sub != "" && !casesHave(t, sub) {
				t.Errorf("%s: the conformance suite has no case %s", p.id, sub)
			}
		}
	}
}

// TestTimesAreCountedOnce: a test that shows two promises runs once. Its time and
// what it has counted are in the line of the first; the second says where.
func TestTimesAreCountedOnce(t *testing.T) {
	t.Parallel()
	shared := test{"TestShared", "../a_test.go"}
	dir := filepath.Dir(filepath.Join(filepath.Dir(page), shared.file))
	for name, c := range map[string]struct {
		failed, want string
		code         int
	}{
		"kept":   {"", "R3   kept         0s  whole; TestShared as for R1\n", 0},
		"broken": {"output\n", "R3   BROKEN       0s  whole; TestShared as for R1\nTestShared as for R1\n", 1},
	} {
		var out strings.Builder
		r := &runner{out: &out, done: map[string]finished{
			dir + "TestShared": {outcome{took: time.Minute, notes: []string{"300 kills"}, failed: c.failed}, "R1"},
		}}
		if code := r.all(t.Context(), []promise{{id: "R3", text: "whole", tests: []test{shared}}}, ""); code != c.code || out.String() != c.want {
			t.Errorf("%s: exit code %d, %q, want %d, %q", name, code, out.String(), c.code, c.want)
		}
	}
}

// casesHave reports whether the suite that every engine runs has a case.
func casesHave(t *testing.T, name string) bool {
	t.Helper()
	source, err := os.ReadFile("../storetest/storetest.go")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(source, []byte(`"`+name+`"`))
}
