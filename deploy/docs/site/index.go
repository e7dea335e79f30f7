package site

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	table "github.com/yuin/goldmark/extension/ast"
)

// entry is one thing that the search finds: a section, or a row that names a setting, a
// metric or an alert.
type entry struct {
	Title string `json:"title"`
	Page  string `json:"page"`
	URL   string `json:"url"`
	Text  string `json:"text"`
	About string `json:"about,omitempty"` // in the first section of a page: its description in the list of pages
}

// named is the first cell of a row that names one setting, metric or alert.
var named = regexp.MustCompile(`^(--[a-z][a-z0-9-]+|[a-z]+(_[a-z0-9]+)+|[A-Z][a-z]+([A-Z][a-z]+)+)( [A-Z]+)?$`)

// nameRows gives each row of a reference page that names one thing an id, so that the search can lead to it. Tables
// of other pages name what a reference page describes, and would be found instead.
func (p *Page) nameRows() {
	if !strings.HasPrefix(p.Path, "reference/") {
		return
	}
	taken := map[string]bool{}
	for _, heading := range nodes[*ast.Heading](p.root) {
		taken[id(heading)] = true
	}
	for _, row := range nodes[*table.TableRow](p.root) {
		name, _, _ := strings.Cut(p.plain(row.FirstChild()), " ")
		name = strings.TrimLeft(name, "-")
		if named.MatchString(p.plain(row.FirstChild())) && !taken[name] {
			taken[name] = true
			row.SetAttributeString("id", []byte(name))
		}
	}
}

// id is the anchor of a node, or nothing.
func id(n ast.Node) string {
	value, _ := n.AttributeString("id")
	b, _ := value.([]byte)
	return string(b)
}

// contents is the page that lists all others.
const contents = folder + "/README.md"

// answers returns what the list of contents says of each page, by its source.
func (m *Manual) answers() map[string]string {
	all := map[string]string{}
	for _, p := range m.pages {
		if p.Source != contents {
			continue
		}
		for _, row := range nodes[*table.TableRow](p.root) {
			for _, link := range nodes[*ast.Link](row.FirstChild()) {
				file, _, _ := target(p.Source, string(link.Destination))
				all[file] += " " + p.plain(row.LastChild())
			}
		}
	}
	return all
}

// index returns the search index, one entry a line. A page is also found by what the list of contents says of it, and
// the list itself is not: its lines would be found instead of the pages.
func (m *Manual) index() ([]byte, error) {
	var b bytes.Buffer
	answers := m.answers()
	for _, p := range m.pages {
		if p.Source == contents {
			continue
		}
		entries := p.entries()
		entries[0].About = strings.TrimSpace(answers[p.Source])
		for _, e := range entries {
			line, err := json.Marshal(e)
			if err != nil {
				return nil, err
			}
			if b.Len() > 0 {
				b.WriteString(",\n")
			}
			b.Write(line)
		}
	}
	return append(append([]byte("[\n"), b.Bytes()...), "\n]\n"...), nil
}

// entries are the sections of a page and its named rows.
func (p *Page) entries() (all []entry) {
	for n := p.root.FirstChild(); n != nil; n = n.NextSibling() {
		if heading, ok := n.(*ast.Heading); ok {
			all = append(all, entry{Title: p.plain(heading), Page: p.Title, URL: p.Path + "#" + id(heading)})
			continue
		}
		if len(all) > 0 {
			section := &all[len(all)-1]
			section.Text = strings.TrimSpace(section.Text + " " + p.sectionText(n))
		}
	}
	for _, row := range nodes[*table.TableRow](p.root) {
		if anchor := id(row); anchor != "" {
			all = append(all, entry{Title: p.plain(row.FirstChild()), Page: p.Title, URL: p.Path + "#" + anchor, Text: p.plain(row)})
		}
	}
	return all
}

// sectionText is the text of a part of a section, without the rows that are entries of
// their own.
func (p *Page) sectionText(n ast.Node) string {
	if n.Kind() != table.KindTable {
		return p.plain(n)
	}
	var rows []string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		if id(row) == "" {
			rows = append(rows, p.plain(row))
		}
	}
	return strings.Join(rows, " ")
}
