package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if len(promises) != 21 {
		t.Errorf("%d promises, want 21", len(promises))
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

// casesHave reports whether the suite that every engine runs has a case.
func casesHave(t *testing.T, name string) bool {
	t.Helper()
	source, err := os.ReadFile("../storetest/storetest.go")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(source, []byte(`"`+name+`"`))
}
