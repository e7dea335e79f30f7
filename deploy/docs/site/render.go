package site

import (
	"bytes"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Console is the folder from which the console serves the manual. The scripts and the
// style in it are written by hand, the pages and the search index by [Manual.Help].
const Console = "eventsvc/internal/console/static/help"

// icon is the icon of the console.
const icon = "eventsvc/internal/console/static/icons/tidings.svg"

// layout is a page of the site. It obeys the Content-Security-Policy of the console: no
// style and no script in it.
var layout = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{.Title}} – Tidings</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="{{.Up}}{{.Icon}}" type="image/svg+xml">
<link rel="stylesheet" href="{{.Up}}help.css">
<script type="module" src="{{.Up}}help.js"></script>
</head>
<body>
<nav aria-label="Manual">{{if .Console}}<a href="{{.Up}}../">To the console</a> {{end}}<a href="{{.Up}}index.html">Contents</a>
<a href="{{.Up}}index.html#tutorials">Tutorials</a> <a href="{{.Up}}index.html#how-to-guides">How-to guides</a>
<a href="{{.Up}}index.html#reference">Reference</a> <a href="{{.Up}}index.html#explanation">Explanation</a></nav>
<search aria-label="Manual"><label>Search <input type="search" id="search" autocomplete="off"></label>
<ol id="found" aria-live="polite"></ol></search>
{{if .Sections}}<aside><nav aria-label="On this page"><h2>On this page</h2>
<ul>{{range .Sections}}<li><a href="#{{.ID}}">{{.Text}}</a></li>
{{end}}</ul></nav>
{{if .Beside}}<nav aria-label="{{.Group}}"><details><summary>{{.Group}}</summary>
<ul>{{range .Beside}}<li>{{if .Here}}<b aria-current="page">{{.Title}}</b>{{else}}<a href="{{.Link}}">{{.Title}}</a>{{end}}</li>
{{end}}</ul></details></nav>{{end}}</aside>
{{end}}<main>
{{.Body}}</main>
</body>
</html>
`))

// view is what the layout shows.
type view struct {
	Title, Up, Icon string
	Console         bool
	Sections        []section
	Group           string // of the page, such as Reference
	Beside          []neighbour
	Body            template.HTML
}

// section is a heading of the second level.
type section struct{ ID, Text string }

// neighbour is a page of the same group.
type neighbour struct {
	Title, Link string
	Here        bool
}

// groups are the names of the folders of pages.
var groups = map[string]string{"tutorials": "Tutorials", "how-to": "How-to guides", "reference": "Reference", "explanation": "Explanation"}

// sections returns the parts of a page. A page that has one part needs no list of them.
func (p *Page) sections() (all []section) {
	for _, heading := range nodes[*ast.Heading](p.root) {
		if heading.Level == 2 {
			all = append(all, section{id(heading), p.plain(heading)})
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// beside returns the pages of the same group by their titles.
func (m *Manual) beside(p *Page) (all []neighbour) {
	dir := path.Dir(p.Path)
	if groups[dir] == "" {
		return nil
	}
	for _, other := range m.pages {
		if path.Dir(other.Path) == dir {
			all = append(all, neighbour{other.Title, path.Base(other.Path), other.Path == p.Path})
		}
	}
	slices.SortFunc(all, func(a, b neighbour) int { return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)) })
	return all
}

// Help renders the files that the console serves, by their path in [Console].
func (m *Manual) Help() (map[string][]byte, error) { return m.render(true) }

// Static renders the site for any web server, by the path of each file.
func (m *Manual) Static() (map[string][]byte, error) {
	files, err := m.render(false)
	if err != nil {
		return nil, err
	}
	assets, err := m.assets()
	if err != nil {
		return nil, err
	}
	for name, content := range assets {
		files[name] = content
	}
	pictures, err := filepath.Glob(filepath.Join(m.root, folder, "images", "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(pictures, filepath.Join(m.root, icon)) {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		files["images/"+filepath.Base(file)] = content
	}
	return files, nil
}

// render renders pages and search index. The console shows no pictures of itself.
func (m *Manual) render(console bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, p := range m.pages {
		content, err := m.page(p, console)
		if err != nil {
			return nil, err
		}
		files[p.Path] = content
	}
	var err error
	files["search.json"], err = m.index()
	return files, err
}

// page renders one page. It parses the page again, because rendering changes the tree.
func (m *Manual) page(source *Page, console bool) ([]byte, error) {
	p, err := parse(source.Source, source.Path, source.text)
	if err != nil {
		return nil, err
	}
	up := strings.Repeat("../", strings.Count(p.Path, "/"))
	for _, picture := range nodes[*ast.Image](p.root) {
		file, _, inside := target(p.Source, string(picture.Destination))
		if console || !inside || !strings.HasPrefix(file, folder+"/images/") {
			remove(picture)
			continue
		}
		picture.Destination = []byte(up + strings.TrimPrefix(file, folder+"/"))
	}
	for _, link := range nodes[*ast.Link](p.root) {
		m.relink(p, link, up)
	}
	for _, tag := range nodes[*ast.RawHTML](p.root) { // a line break in a table; goldmark leaves out all other HTML
		if string(tag.Segments.Value(p.text)) == "<br>" {
			br := ast.NewString([]byte("<br>"))
			br.SetCode(true)
			tag.Parent().ReplaceChild(tag.Parent(), tag, br)
		}
	}
	var body, page bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.text, p.root); err != nil {
		return nil, err
	}
	v := view{
		Title: p.Title, Up: up, Icon: "images/" + path.Base(icon), Console: console,
		Sections: p.sections(), Group: groups[path.Dir(p.Path)], Beside: m.beside(p), Body: template.HTML(scrollable(body.String())),
	}
	if console {
		v.Icon = "../icons/" + path.Base(icon)
	}
	err = layout.Execute(&page, v)
	return page.Bytes(), err
}

// relink leads a link to the rendered page, or replaces it by its text.
func (m *Manual) relink(p *Page, link *ast.Link, up string) {
	file, anchor, inside := target(p.Source, string(link.Destination))
	if !inside {
		return
	}
	to, ok := m.paths[file]
	if !ok {
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
		return
	}
	if anchor != "" {
		anchor = "#" + anchor
	}
	if file == p.Source && anchor != "" {
		link.Destination = []byte(anchor)
		return
	}
	link.Destination = []byte(up + to + anchor)
	if p.plain(link) == path.Base(file) { // in the repository a link says which file; here readers see titles
		i := slices.IndexFunc(m.pages, func(other *Page) bool { return other.Source == file })
		link.RemoveChildren(link)
		link.AppendChild(link, ast.NewString([]byte(m.pages[i].Title)))
	}
}

// remove takes a picture out of the document, with its paragraph if nothing else is there.
func remove(picture ast.Node) {
	parent := picture.Parent()
	parent.RemoveChild(parent, picture)
	if !parent.HasChildren() {
		parent.Parent().RemoveChild(parent.Parent(), parent)
	}
}

// scrollable puts what may be wider than a phone into a part that scrolls, and that the
// keyboard reaches.
func scrollable(body string) string {
	return strings.NewReplacer(
		"<table>", `<div class="wide" role="region" aria-label="Table" tabindex="0"><table aria-label="Table">`, "</table>", "</table></div>",
		"<pre>", `<pre tabindex="0">`,
	).Replace(body)
}
