package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReadmeOutcomes: the table of errors has each outcome of the token endpoint with its status and its error, and no
// other.
func TestReadmeOutcomes(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "\n### Errors of the token endpoint\n")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	code := regexp.MustCompile("`(\\w+)`")
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| (.*?) \| .* \| (.*) \|$`).FindAllStringSubmatch(table, -1) {
		errors := code.FindAllStringSubmatch(row[2], -1)
		for i, outcome := range code.FindAllStringSubmatch(row[3], -1) {
			listed[row[1]+" "+errors[min(i, len(errors)-1)][1]+" "+outcome[1]] = true
		}
	}
	faults := faults(t)
	for _, fault := range faults {
		if !listed[fault] {
			t.Errorf("README.md has no outcome %q", fault)
		}
		delete(listed, fault)
	}
	for row := range listed {
		t.Errorf("README.md has %q, which the token endpoint never answers", row)
	}
	if len(faults) < 20 {
		t.Errorf("only %d ways to fail are found", len(faults))
	}
}

// faults returns status, error and outcome of each way in which a token request fails.
func faults(t *testing.T) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "internal/oauth/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	statuses := map[string]int{}
	for status := 400; status < 600; status++ {
		statuses["Status"+strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(status))] = status
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, value := range n.Values {
				texts[n.Names[i].Name] = text(value)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "newFault" {
				status := statuses[n.Args[1].(*ast.SelectorExpr).Sel.Name]
				all = append(all, strconv.Itoa(status)+" "+n.Args[2].(*ast.Ident).Name+" "+text(n.Args[0]))
			}
		}
		return true
	})
	for i, fault := range all {
		parts := strings.Split(fault, " ")
		all[i] = parts[0] + " " + texts[parts[1]] + " " + parts[2]
	}
	return all
}

// text is the value of a literal, or "".
func text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
		value, _ := strconv.Unquote(literal.Value)
		return value
	}
	return ""
}

// TestReadmePaths: each path that README.md names is served as it says, and each path of the code is named there.
func TestReadmePaths(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "\n## What it answers\n")
	table, _, _ = strings.Cut(table, "\n### ")
	r := start(t, "--clients-file", clientsFile(t))
	bearer, _ := askToken(t, r, demoForm)
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(GET|POST) (/\\S+)`(?:, `…(/\\S+)`)? \\| (public|token) \\|").FindAllStringSubmatch(table, -1) {
		paths := []string{row[2]}
		if row[3] != "" {
			paths = append(paths, row[2][:strings.LastIndex(row[2], "/")]+row[3])
		}
		for _, path := range paths {
			named = append(named, path)
			for _, token := range []string{"", bearer} {
				status := ask(t, row[1], r.api+path, token)
				if refused := status == http.StatusUnauthorized && path != "/oauth2/token"; refused != (row[4] == "token" && token == "") || status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
					t.Errorf("%s %s, with a token: %t: %d", row[1], path, token != "", status)
				}
			}
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "internal/oauth/server.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "path") {
			served = append(served, text(spec.Values[0]))
		}
		return true
	})
	slices.Sort(named)
	slices.Sort(served)
	if !slices.Equal(named, served) || len(served) == 0 {
		t.Errorf("README.md names %v, served are %v", named, served)
	}
}

// ask returns the status of an answer to a request with a token, unless that is empty.
func ask(t *testing.T, method, target, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode
}
