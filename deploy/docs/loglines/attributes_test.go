package loglines_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRequestLines: the page lists the attributes that the lines of single requests have, and no others.
func TestRequestLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for message, written := range map[string][]string{
		"request":       append(attributes(t, "shared/httpserver/access.go", "logRequest"), annotations(t)...),
		"token request": attributes(t, "tokensvc/internal/oauth/audit.go", "audit"),
	} {
		_, table, _ := strings.Cut(string(text), "\n| attribute of `"+message+"` | what it is |\n")
		table, _, _ = strings.Cut(table, "\n\n")
		var listed []string
		for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\| ").FindAllStringSubmatch(table, -1) {
			listed = append(listed, strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")...)
		}
		slices.Sort(written)
		slices.Sort(listed)
		if written = slices.Compact(written); len(written) < 5 || !slices.Equal(written, listed) {
			t.Errorf("%s: the code writes %v, the page has %v", message, written, listed)
		}
	}
}

// attributes returns the names of the attributes that a function adds to a line.
func attributes(t *testing.T, path, function string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == function {
			names = attributesIn(f)
		}
	}
	return names
}

// annotations returns the names of the attributes that other code adds to the line of its request.
func annotations(t *testing.T) (names []string) {
	t.Helper()
	for _, folder := range []string{"eventsvc", "tokensvc", "shared"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Annotate" {
						names = append(names, attributesIn(call)...)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// attributesIn returns the first arguments of calls such as slog.String.
func attributesIn(n ast.Node) (names []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := f.X.(*ast.Ident); ok && from.Name == "slog" {
			names = append(names, constant(call.Args[0]))
		}
		return true
	})
	return names
}
