package queries_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/api/queries"
)

// TestQueryPage: the page about queries has each path and each of its parameters, and no others.
func TestQueryPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../deploy/docs/reference/query.md")
	if err != nil {
		t.Fatal(err)
	}
	described, err := queries.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]struct {
			Get struct{ Parameters []struct{ Name string } }
		}
	}
	if err := json.Unmarshal(described, &document); err != nil || len(document.Paths) == 0 {
		t.Fatalf("%d paths: %v", len(document.Paths), err)
	}
	page := string(text)
	common := names(rows(page, "parameter"), 1)
	listed := map[string][]string{}
	for _, row := range rows(page, "path") {
		if len(row) < 4 || row[1] == "path" {
			continue
		}
		parameters := names([][]string{row}, 3)
		if !strings.HasSuffix(row[3], "; no others") {
			parameters = append(parameters, common...)
		}
		listed[names([][]string{row}, 1)[0]] = parameters
	}
	for path, of := range document.Paths {
		name := path[strings.LastIndex(path, "/")+1:]
		var known []string
		for _, p := range of.Get.Parameters {
			known = append(known, p.Name)
		}
		slices.Sort(known)
		slices.Sort(listed[name])
		if !slices.Equal(known, listed[name]) {
			t.Errorf("%s knows %v, the page has %v", name, known, listed[name])
		}
		delete(listed, name)
	}
	if len(listed) > 0 {
		t.Errorf("the page has paths that are not served: %v", listed)
	}
}

// rows returns the cells of the first table whose head begins with a word; the cell before the first is empty.
func rows(page, head string) (all [][]string) {
	_, table, _ := strings.Cut(page, "\n| "+head+" |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n")[2:] {
		all = append(all, strings.Split(line, "|"))
		for i, cell := range all[len(all)-1] {
			all[len(all)-1][i] = strings.TrimSpace(cell)
		}
	}
	return all
}

// names returns what is code in a column, without what stands in parentheses.
func names(rows [][]string, column int) (all []string) {
	for _, row := range rows {
		cell := regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(row[column], "")
		for _, code := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cell, -1) {
			all = append(all, code[1])
		}
	}
	return all
}
