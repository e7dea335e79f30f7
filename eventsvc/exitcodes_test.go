package main

import (
	"go/ast"
	"go/parser"
	syntax "go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExitCodePage: the page names each command that ends with an exit code of its own, in the row of this code.
func TestExitCodePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../deploy/docs/reference/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{"errNo": "1", "errFindings": "3", "ErrTimedOut": "3"}
	commands := map[string]string{ // by the type that runs it
		"canI": "can-i", "tokenCheck": "token check", "check": "check", "databaseCheck": "database check", "importC": "import", "openC": "open",
		"tail": "tail --wait-for",
	}
	named := map[string]bool{}
	for _, pattern := range []string{"*.go", "internal/ctl/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(syntax.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv == nil {
					continue
				}
				for _, name := range returned(f) {
					if codes[name] == "" {
						continue
					}
					of := f.Recv.List[0].Type
					if pointer, ok := of.(*ast.StarExpr); ok {
						of = pointer.X
					}
					command := commands[of.(*ast.Ident).Name]
					row := regexp.MustCompile(`(?m)^\| ` + codes[name] + ` \| .*$`).FindString(string(page))
					if command == "" || !strings.Contains(row, "`"+command+"`") {
						t.Errorf("%s: %v returns %s, and the row %q does not name its command", path, of, name, row)
					}
					named[command] = true
				}
			}
		}
	}
	for _, command := range commands {
		if !named[command] {
			t.Errorf("no code of its own is found for %s", command)
		}
	}
}

// returned returns the names that the return statements of a function have.
func returned(f *ast.FuncDecl) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.ReturnStmt); ok {
			ast.Inspect(n, func(n ast.Node) bool {
				if name, ok := n.(*ast.Ident); ok {
					names = append(names, name.Name)
				}
				return true
			})
		}
		return true
	})
	return names
}
