package site

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// folder holds the pages of the manual.
const folder = "deploy/docs"

// readmes are the pages outside of the folder, and where they are on the site.
var readmes = map[string]string{
	"README.md":             "overview.html",
	"deploy/docs/README.md": "index.html",
	"eventsvc/README.md":    "reference/eventsvc.html",
	"tokensvc/README.md":    "reference/tokensvc.html",
}

// Page is a page of the manual.
type Page struct {
	Source string // its path in the repository
	Path   string // its path on the site
	Title  string
	text   []byte
	root   ast.Node
}

// Manual is all pages.
type Manual struct {
	root  string // the repository
	pages []*Page
	paths map[string]string // on the site, by source
}

// markdown is the dialect of the pages, which is GitHub's.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Linkify, extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// Read parses the manual of the repository at root.
func Read(root string) (*Manual, error) {
	m := &Manual{root: root, paths: map[string]string{}}
	for source, to := range readmes {
		m.paths[source] = to
	}
	pages, err := filepath.Glob(filepath.Join(root, folder, "*", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, file := range pages {
		source, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		source = filepath.ToSlash(source)
		m.paths[source] = strings.TrimSuffix(strings.TrimPrefix(source, folder+"/"), ".md") + ".html"
	}
	for source, to := range m.paths {
		text, err := os.ReadFile(filepath.Join(root, source))
		if err != nil {
			return nil, err
		}
		page, err := parse(source, to, text)
		if err != nil {
			return nil, err
		}
		m.pages = append(m.pages, page)
	}
	slices.SortFunc(m.pages, func(a, b *Page) int { return strings.Compare(a.Path, b.Path) })
	return m, nil
}

// parse reads a page, and gives rows of tables that name one thing an id.
func parse(source, to string, content []byte) (*Page, error) {
	p := &Page{Source: source, Path: to, text: content, root: markdown.Parser().Parse(text.NewReader(content))}
	for _, heading := range nodes[*ast.Heading](p.root) {
		if heading.Level == 1 {
			p.Title = p.plain(heading)
			break
		}
	}
	if p.Title == "" {
		return nil, fmt.Errorf("%s has no title", source)
	}
	p.nameRows()
	return p, nil
}

// Pages returns all pages in the order of their paths.
func (m *Manual) Pages() []*Page { return m.pages }

// target returns where a link of a page leads: a path in the repository and an anchor.
// It reports false for a link that leaves the repository.
func target(from, link string) (file, anchor string, inside bool) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return "", "", false
	}
	file, anchor, _ = strings.Cut(link, "#")
	if file == "" {
		return from, anchor, true
	}
	return path.Join(path.Dir(from), file), anchor, true
}

// nodes returns all nodes of one kind in a document, in its order.
func nodes[N ast.Node](root ast.Node) (all []N) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if node, ok := n.(N); ok && entering {
			all = append(all, node)
		}
		return ast.WalkContinue, nil
	})
	return all
}

// plain returns the text below a node without markup.
func (p *Page) plain(root ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(p.text))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(p.text))
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				b.Write(n.Lines().Value(p.text))
			}
		}
		if !entering && n.Type() == ast.TypeBlock {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// assets are the files that the pages need beside them.
func (m *Manual) assets() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{"help.css", "help.js", "search.js"} {
		b, err := fs.ReadFile(os.DirFS(m.root), path.Join(Console, name))
		if err != nil {
			return nil, err
		}
		files[name] = b
	}
	return files, nil
}
