package console_test

import (
	"bytes"
	"flag"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

var update = flag.Bool("update", false, "render the pages of help again")

// helpPages are the pages of deploy/docs that are served with the console: its own, and those that it needs.
var helpPages = []string{"console", "query", "operate"}

// TestHelp: the pages of help are those of deploy/docs.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, name := range helpPages {
		source, err := os.ReadFile(filepath.Join(root, "deploy/docs", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		want := renderHelp(t, name, source)
		file := helpFile(name)
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what deploy/docs/%s.md says: run this test with -update\n%v%s", file, name, err, cmp.Diff(string(got), string(want)))
		}
	}
}

// TestHelpLinks: every link of the pages, and of the console to them, has its place.
func TestHelpLinks(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for _, name := range helpPages {
		b, err := os.ReadFile(helpFile(name))
		if err != nil {
			t.Fatal(err)
		}
		pages[name+".html"] = string(b)
	}
	has := func(from, page, id string) {
		content, ok := pages[page]
		if !ok || id != "" && !strings.Contains(content, ` id="`+id+`"`) {
			t.Errorf("%s: there is no %s#%s", from, page, id)
		}
	}
	for name, content := range pages {
		for _, m := range regexp.MustCompile(`href="([^"#/]*)(?:#([^"]*))?"`).FindAllStringSubmatch(content, -1) {
			page := m[1]
			if page == "" {
				page = name
			}
			has(name, page, m[2])
		}
	}
	for _, id := range []string{"overview", "events", "live", "groups", "changes", "one-object"} {
		has("the question mark of a view", "console.html", id)
	}
	scripts := filepath.Join(root, "eventsvc/internal/console/static/js")
	err := filepath.WalkDir(scripts, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(file)
		for _, m := range regexp.MustCompile(`"help/([a-z]+\.html)(?:#([a-z-]+))?"`).FindAllStringSubmatch(string(b), -1) {
			has(file, m[1], m[2])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func helpFile(name string) string {
	return filepath.Join(root, "eventsvc/internal/console/static/help", name+".html")
}

// layout is a page of help. It obeys the Content-Security-Policy of the console: no style and no script in it.
var layout = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{.Title}} – Tidings</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="../icons/tidings.svg" type="image/svg+xml">
<link rel="stylesheet" href="../css/help.css">
</head>
<body>
<nav aria-label="Pages"><a href="../">To the console</a>{{range .Pages}}{{if eq .Name $.Name}} <span aria-current="page">{{.Title}}</span>{{else}} <a href="{{.Name}}.html">{{.Title}}</a>{{end}}{{end}}</nav>
<main>
{{.Body}}</main>
</body>
</html>
`))

type helpPage struct {
	Name, Title string
	Pages       []helpPage
	Body        template.HTML
}

// renderHelp makes a page from one of deploy/docs. Links to what is not served with the console become text. HTML in the
// source is left out.
func renderHelp(t *testing.T, name string, source []byte) []byte {
	t.Helper()
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Linkify, extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	)
	doc := markdown.Parser().Parse(text.NewReader(source))
	for _, picture := range nodes[*ast.Image](t, doc) { // who reads this has the console itself
		paragraph := picture.Parent()
		paragraph.Parent().RemoveChild(paragraph.Parent(), paragraph)
	}
	for _, link := range links(t, doc) {
		if to, ok := helpLink(string(link.Destination)); ok {
			link.Destination = []byte(to)
			continue
		}
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
	var body, page bytes.Buffer
	if err := markdown.Renderer().Render(&body, source, doc); err != nil {
		t.Fatal(err)
	}
	p := helpPage{Name: name, Title: title(t, name), Body: template.HTML(scrollable(body.String()))}
	for _, other := range helpPages {
		p.Pages = append(p.Pages, helpPage{Name: other, Title: title(t, other)})
	}
	if err := layout.Execute(&page, p); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}

// links returns all links in a document.
func links(t *testing.T, doc ast.Node) []*ast.Link { return nodes[*ast.Link](t, doc) }

// nodes are those of one kind.
func nodes[N ast.Node](t *testing.T, doc ast.Node) (all []N) {
	t.Helper()
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if node, ok := n.(N); ok && entering {
			all = append(all, node)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// helpLink returns where a link leads among the pages of help, and false if it leads out of them.
func helpLink(to string) (string, bool) {
	page, place, _ := strings.Cut(to, "#")
	if page == "" {
		return to, true
	}
	for _, name := range helpPages {
		if page == name+".md" {
			return strings.TrimSuffix(name+".html#"+place, "#"), true
		}
	}
	return "", false
}

// scrollable puts what may be wider than a phone into a part that scrolls, and that the keyboard reaches.
func scrollable(body string) string {
	return strings.NewReplacer(
		"<table>", `<div class="wide" role="region" aria-label="Table" tabindex="0"><table>`, "</table>", "</table></div>",
		"<pre>", `<pre tabindex="0">`,
	).Replace(body)
}

// title is the first line of a page.
func title(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "deploy/docs", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(string(b), "# "), "\n")
	return strings.ReplaceAll(first, "`", "")
}
