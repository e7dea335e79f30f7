package answers_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the page")

const (
	root = "../../.."
	page = "../reference/errors.md"
	rule = "|---|---|---|---|\n"
)

// TestErrorPage: the page has every error that the code answers with and whose message does not say what to do, and no
// other.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	before, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := find(t)
	if len(found) < 120 {
		t.Fatalf("only %d answers are found in the code", len(found))
	}
	found = slices.DeleteFunc(found, answer.saysItself)
	sections := strings.Split(string(before), "\n## ")
	for i, section := range sections {
		heading, _, _ := strings.Cut(section, "\n")
		sections[i] = withRows(t, section, slices.DeleteFunc(slices.Clone(found), func(a answer) bool { return a.section != heading }))
	}
	for _, a := range found {
		if !strings.Contains(string(before), "\n## "+a.section+"\n") {
			t.Errorf("the page has no section %q", a.section)
		}
	}
	switch after := strings.Join(sections, "\n## "); {
	case *update:
		err = os.WriteFile(page, []byte(after), 0o644)
	case after != string(before):
		t.Error("the page does not list what the code answers: run this test with -update")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// saysItself reports whether the message of an answer names what is wrong with the request. The page does not list it.
func (a answer) saysItself() bool {
	return slices.Contains([]int{400, 405, 406, 415}, a.status) && a.section != "Other paths of tokensvc" || a.section == "Plain text"
}

// cell is how the page shows the status, reason and message of an answer.
func (a answer) cell() string {
	status := "any other"
	if a.status != 0 {
		status = strconv.Itoa(a.status)
	}
	return fmt.Sprintf("| %s | %s | %s |", status, code(a.reason), code(a.message))
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// withRows puts the answers into the table of a section. What to do is kept from the row that the section has.
func withRows(t *testing.T, section string, all []answer) string {
	t.Helper()
	head, rest, ok := strings.Cut(section, rule)
	if !ok || len(all) == 0 {
		return section
	}
	table, tail, _ := strings.Cut(rest+"\n", "\n\n")
	cures := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^(\| [\w ]+ \| .* \|) (.*) \|$`).FindAllStringSubmatch(table, -1) {
		cures[row[1]] = row[2]
	}
	var rows strings.Builder
	for _, a := range all {
		if cures[a.cell()] == "" {
			t.Errorf("the page does not say what to do about %s", a.cell())
		}
		fmt.Fprintf(&rows, "%s %s |\n", a.cell(), cures[a.cell()])
	}
	if tail = strings.TrimSuffix(tail, "\n"); tail != "" {
		tail = "\n" + tail + "\n"
	}
	return head + rule + rows.String() + tail
}

// find returns the answers of both services, each once, in the order of the page.
func find(t *testing.T) (all []answer) {
	t.Helper()
	files := sources(t)
	f := finder{constants: constants(files)}
	for path, file := range files {
		f.folder = filepath.ToSlash(filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			all = append(all, f.at(n)...)
			return true
		})
	}
	if len(f.unknown) > 0 {
		t.Errorf("the test does not know what these answer: %v", f.unknown)
	}
	slices.SortFunc(all, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.status, b.status), cmp.Compare(a.reason, b.reason), cmp.Compare(a.message, b.message))
	})
	return slices.Compact(all)
}

// sources returns the syntax of the code that answers requests, by path. Commands and the mirror are clients: they only
// pass on the errors of a server.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, folder := range []string{"eventsvc/internal", "tokensvc/internal", "shared"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"testdata", "client", "mirror", "ctl"}, d.Name()) && folder == "eventsvc/internal":
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// constants returns the texts that have a name in the code.
func constants(files map[string]*ast.File) map[string]string {
	named := map[string]string{}
	f := finder{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					named[spec.Names[i].Name] = f.shape(literal)
				}
			}
			return true
		})
	}
	return named
}
