package conformance_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestCoverage: every test and every case that COVERAGE.md names exists, and
// none can skip itself unnoticed.
func TestCoverage(t *testing.T) {
	t.Parallel()
	text := must(os.ReadFile("COVERAGE.md")).or(t)
	packages := map[string]*testPackage{}
	rows := 0
	for number, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !regexp.MustCompile(`^ \d`).MatchString(cells[1]) {
			continue
		}
		rows++
		names := regexp.MustCompile("`(?:(internal/[a-z/]+)\\.)?(Test\\w+)(/[^`]+)?`").FindAllStringSubmatch(cells[3], -1)
		if len(names) == 0 || len(names) != strings.Count(cells[3], "`")/2 {
			t.Errorf("COVERAGE.md:%d: not all of this names a test: %s", number+1, cells[3])
		}
		for _, name := range names {
			p := packages[name[1]]
			if p == nil {
				p = readTests(t, name[1])
				packages[name[1]] = p
			}
			if problem := p.check(name[2], strings.TrimPrefix(name[3], "/")); problem != "" {
				t.Errorf("COVERAGE.md:%d: %s: %s", number+1, name[0], problem)
			}
		}
	}
	if rows < 150 {
		t.Errorf("only %d rows were found in COVERAGE.md", rows)
	}
}

// testPackage is what the test files of a package hold.
type testPackage struct {
	functions map[string]*ast.FuncDecl
}

// readTests reads the test files of a folder of eventsvc; none: of this module.
func readTests(t *testing.T, folder string) *testPackage {
	t.Helper()
	dir := "."
	if folder != "" {
		dir = filepath.Join("..", "..", "..", "eventsvc", filepath.FromSlash(folder))
	}
	p := &testPackage{map[string]*ast.FuncDecl{}}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range files {
		file := must(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)).or(t)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				p.functions[f.Name.Name] = f
			}
		}
	}
	return p
}

// check says what is wrong with a test or with a case of it; nothing if it is
// empty.
func (p *testPackage) check(test, subtest string) string {
	f := p.functions[test]
	if f == nil {
		return "there is no such test"
	}
	texts, skips := map[string]bool{"": true}, false
	for _, part := range p.reached(f) {
		ast.Inspect(part, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					texts[text] = true
				}
			case *ast.SelectorExpr:
				skips = skips || strings.HasPrefix(n.Sel.Name, "Skip")
			}
			return true
		})
	}
	found := texts[subtest]
	for i, r := range subtest {
		// Some cases are named by a word and a name of the table.
		found = found || r == ' ' && texts[subtest[:i+1]] && texts[subtest[i+1:]]
	}
	switch {
	case !found:
		return "the test has no such case"
	case skips:
		return "the test may be skipped"
	}
	return ""
}

// reached are a test and the functions of its package that it calls, but for
// missing, the one way to skip, which fails in CI.
func (p *testPackage) reached(f *ast.FuncDecl) []*ast.FuncDecl {
	seen := map[string]bool{f.Name.Name: true, "missing": true}
	all := []*ast.FuncDecl{f}
	for i := 0; i < len(all); i++ {
		ast.Inspect(all[i], func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !seen[id.Name] && p.functions[id.Name] != nil {
				seen[id.Name] = true
				all = append(all, p.functions[id.Name])
			}
			return true
		})
	}
	return all
}
