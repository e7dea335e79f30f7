package site_test

import (
	"os"
	"path/filepath"
	"testing"

	"tidings.example/deploy/docs/site"
)

// TestLinks: every link, anchor and picture of every page leads to a file of the repository, and to a heading of it.
func TestLinks(t *testing.T) {
	t.Parallel()
	m := read(t)
	pages := map[string]*site.Page{}
	for _, p := range m.Pages() {
		pages[p.Source] = p
	}
	links := 0
	for _, p := range m.Pages() {
		for _, link := range p.Links() {
			links++
			if _, err := os.Stat(filepath.Join(root, link.File)); err != nil {
				t.Errorf("%s: there is no %s", p.Source, link.File)
			}
			if to := pages[link.File]; link.Anchor != "" && to != nil && !to.Has(link.Anchor) {
				t.Errorf("%s: %s has no heading #%s", p.Source, link.File, link.Anchor)
			}
		}
	}
	if links < 150 {
		t.Errorf("only %d links were found", links)
	}
}

// TestIndexed: the index of the manual names every page.
func TestIndexed(t *testing.T) {
	t.Parallel()
	m := read(t)
	named := map[string]bool{"README.md": true, "deploy/docs/README.md": true}
	for _, p := range m.Pages() {
		if p.Source != "deploy/docs/README.md" {
			continue
		}
		for _, link := range p.Links() {
			named[link.File] = true
		}
	}
	for _, p := range m.Pages() {
		if !named[p.Source] {
			t.Errorf("deploy/docs/README.md does not name %s", p.Source)
		}
	}
}
