package security

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a reader can keep in mind of a package, of a type and of an engine's DB.
const (
	mostLines   = 2500
	mostMethods = 25
	mostFields  = 10
)

// TestSizes: no package has too many lines, no type too many methods, and no DB too many fields. Tests do not count.
func TestSizes(t *testing.T) {
	t.Parallel()
	lines, methods, engines := map[string]int{}, map[string]int{}, 0
	for _, module := range []string{"eventsvc", "tokensvc", "shared", "deploy"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			pkg, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil || ast.IsGenerated(file) {
				return err
			}
			lines[pkg] += strings.Count(string(text), "\n")
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
					methods[pkg+" "+receiverOf(f)]++
				}
			}
			if n := fieldsOfDB(file); n > 0 {
				if engines++; n > mostFields {
					t.Errorf("%s: DB has %d fields, more than %d: give those that belong together a type", path, n, mostFields)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for pkg, n := range lines {
		if n > mostLines {
			t.Errorf("%s has %d lines without tests, more than %d: give one of its concepts a package of its own", pkg, n, mostLines)
		}
	}
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods, more than %d: move some to the type whose fields they use", name, n, mostMethods)
		}
	}
	if len(lines) < 50 || len(methods) < 100 || engines != 2 {
		t.Errorf("%d packages, %d types with methods and %d engines were found, want at least 50, 100 and 2", len(lines), len(methods), engines)
	}
}

// receiverOf returns the name of the type that a method belongs to.
func receiverOf(f *ast.FuncDecl) string {
	name := f.Recv.List[0].Type
	for {
		switch e := name.(type) {
		case *ast.StarExpr:
			name = e.X
		case *ast.IndexExpr:
			name = e.X
		case *ast.IndexListExpr:
			name = e.X
		case *ast.Ident:
			return e.Name
		default:
			return "?"
		}
	}
}

// fieldsOfDB returns how many fields the type DB of a file has, 0 if there is none.
func fieldsOfDB(file *ast.File) (n int) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "DB" {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			n = s.Fields.NumFields()
		}
		return false
	})
	return n
}
