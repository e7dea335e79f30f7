package loglines_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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
	page = "../reference/log.md"
)

// levels are the methods of a logger, and how urgent a line is.
var levels = map[string]string{"Info": "info", "Warn": "warn", "Error": "error"}

// TestLogPage: the page has every warning and error of the code, and says what to do about each.
func TestLogPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, table, ok := strings.Cut(string(text), "| message | what to do |\n|---|---|\n")
	if !ok {
		t.Fatal("the page has no table")
	}
	cures := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(.*)` \\| (?:.* \\| .* \\| )?(.*) \\|$").FindAllStringSubmatch(table, -1) {
		cures[row[1]] = row[2]
	}
	found := messages(t)
	if len(found) < 60 {
		t.Fatalf("only %d messages are found in the code", len(found))
	}
	var rows strings.Builder
	for _, message := range slices.Sorted(maps.Keys(found)) {
		cure := cures[message]
		if found[message] == "info" {
			continue
		}
		if cure == "" {
			t.Errorf("%q: the page does not say what to do", message)
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", message, cure)
	}
	if want := head + "| message | what to do |\n|---|---|\n" + rows.String(); *update {
		err = os.WriteFile(page, []byte(want), 0o644)
	} else if want != string(text) {
		t.Error("the page is not what the code logs: run this test with -update")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// messages returns the messages of both services with their levels.
func messages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range []string{"eventsvc", "tokensvc", "shared"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && (d.Name() == "testdata") {
				return skipped(err)
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				ast.Inspect(file, func(n ast.Node) bool {
					if level, message := logged(n); message != "" {
						found[message] = level
					}
					return true
				})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func skipped(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

// logged returns the level and the message of a call of a logger. The message is empty for any other node, and for a
// message that is not written there.
func logged(n ast.Node) (level, message string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isLogger(method.X) {
		return "", ""
	}
	name, withContext := strings.CutSuffix(method.Sel.Name, "Context")
	args := call.Args
	if withContext && len(args) > 0 {
		args = args[1:]
	}
	if level = levels[name]; level == "" || len(args) == 0 {
		return "", ""
	}
	return level, constant(args[0])
}

// isLogger reports whether an expression is a logger by its name, which is log or Log in all of the code.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log")
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log")
	}
	return false
}

// constant returns the text of a literal or of a sum of literals.
func constant(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(x.Value)
		return text
	case *ast.BinaryExpr:
		return constant(x.X) + constant(x.Y)
	}
	return ""
}
