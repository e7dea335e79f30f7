package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
)

// TestPolicyPage: the page of the policy file lists every field, and every example decides as its table says.
func TestPolicyPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../deploy/docs/reference/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = true
	}
	if diff := cmp.Diff(fieldsOfFile(t), listed); diff != "" {
		t.Errorf("fields (-decoded +listed):\n%s", diff)
	}
	examples := strings.Split(string(page), "```yaml\n")[1:]
	if len(examples) < 6 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, example := range examples {
		text, rest, _ := strings.Cut(example, "```")
		p := parse(t, text)
		yes, no := 0, 0
		for _, row := range regexp.MustCompile(`(?m)^\| (\S*=.*?) \| (\w+) \| (\S+) \|(?: (\S+) \|)? (yes|no) \|$`).FindAllStringSubmatch(rest, -1) {
			verb, err := policy.ParseVerb(row[2])
			if err != nil {
				t.Fatal(err)
			}
			namespace := row[3]
			if namespace == "*" {
				namespace = policy.AllNamespaces
			}
			var cluster *string
			if row[4] != "" {
				cluster = new(strings.Trim(row[4], `"`))
			}
			if d := p.Decide(described(row[1]), verb, namespace).Of(cluster); d.Allowed != (row[5] == "yes") {
				t.Errorf("%s\n%s: %+v", text, row[0], d)
			}
			if row[5] == "yes" {
				yes++
			} else {
				no++
			}
		}
		if yes == 0 || no == 0 {
			t.Errorf("%s\n%d decisions are yes, %d are no: show both", text, yes, no)
		}
	}
}

// described is a caller as the tables write it.
func described(text string) *bearer.Caller {
	c := &bearer.Caller{Issuer: first, Claims: map[string][]string{}}
	for part := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "issuer":
			c.Issuer = value
		case "clientID":
			c.ClientID = value
		case "scope":
			c.Scopes = append(c.Scopes, value)
		default:
			c.Claims[name] = append(c.Claims[name], value)
		}
	}
	return c
}

// fieldsOfFile returns the fields that the decoder knows, by the keys of its tables.
func fieldsOfFile(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "decode.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if kind, ok := table.Type.(*ast.Ident); !ok || kind.Name != "fields" {
			return true
		}
		for _, e := range table.Elts {
			if key, ok := e.(*ast.KeyValueExpr).Key.(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(key.Value)
				names[name] = true
			}
		}
		return true
	})
	if !names["roles"] {
		t.Fatal("the tables of the decoder are not found")
	}
	return names
}
