package site

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	table "github.com/yuin/goldmark/extension/ast"
)

// Prose returns the sentences of a page by paragraph, item of a list and cell of a table.
// Code in a sentence stands as one word; blocks of code are left out.
func (p *Page) Prose() (all []string) {
	_ = ast.Walk(p.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind() {
		case ast.KindParagraph, ast.KindTextBlock, table.KindTableCell:
			if words := p.words(n); words != "" {
				all = append(all, words)
			}
		}
		return ast.WalkContinue, nil
	})
	return all
}

// words is the text of a paragraph, with a placeholder for each span of code.
func (p *Page) words(paragraph ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(paragraph, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.CodeSpan:
			if entering {
				b.WriteString("`code`")
			}
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering {
				b.Write(n.Value(p.text))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// Levels returns the levels of the headings of a page in their order.
func (p *Page) Levels() (all []int) {
	for _, heading := range nodes[*ast.Heading](p.root) {
		all = append(all, heading.Level)
	}
	return all
}
