package site

import "github.com/yuin/goldmark/ast"

// Link is a link or a picture of a page that stays in the repository.
type Link struct {
	File   string // its path in the repository
	Anchor string // the heading, or nothing
}

// Links returns the links and pictures of a page that stay in the repository.
func (p *Page) Links() (all []Link) {
	var to []string
	for _, link := range nodes[*ast.Link](p.root) {
		to = append(to, string(link.Destination))
	}
	for _, picture := range nodes[*ast.Image](p.root) {
		to = append(to, string(picture.Destination))
	}
	for _, link := range to {
		if file, anchor, inside := target(p.Source, link); inside {
			all = append(all, Link{file, anchor})
		}
	}
	return all
}

// Has reports whether a page has a heading with an anchor.
func (p *Page) Has(anchor string) bool {
	for _, heading := range nodes[*ast.Heading](p.root) {
		if id(heading) == anchor {
			return true
		}
	}
	return false
}
