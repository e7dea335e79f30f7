package site_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidings.example/deploy/docs/site"
)

// questions are what people type into the search, and the page, or pages, of which one has the answer.
const questions = "testdata/questions.txt"

// TestQuestions: the search of the manual has the right page among the first three for nearly all questions. It runs
// the script of the pages over their index.
func TestQuestions(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	files, err := read(t).Help()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join("../../..", site.Console, "search.js"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(questions)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	want := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		question, pages, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			t.Fatalf("%s: %q is no question with its pages", questions, line)
		}
		asked = append(asked, question)
		want[question] = strings.Fields(pages)
	}
	list, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"search.mjs": script, "search.json": files["search.json"], "asked.json": list,
		"ask.mjs": []byte(`import fs from "node:fs";
import { find } from "./search.mjs";
const read = (name) => JSON.parse(fs.readFileSync(new URL(name, import.meta.url), "utf8"));
const entries = read("search.json");
const pages = (question) => [...new Set(find(entries, question).map((e) => e.url.split(".html")[0]))].slice(0, 3);
console.log(JSON.stringify(Object.fromEntries(read("asked.json").map((q) => [q, pages(q)]))));
`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), node, filepath.Join(dir, "ask.mjs")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var found map[string][]string
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	missed := 0
	for _, question := range asked {
		if !slices.ContainsFunc(found[question], func(page string) bool { return slices.Contains(want[question], page) }) {
			missed++
			t.Logf("%q finds %q, not %q", question, found[question], want[question])
		}
	}
	t.Logf("%d of %d questions lead to the right page", len(asked)-missed, len(asked))
	if missed*66 > 4*len(asked) {
		t.Errorf("%d of %d questions lead elsewhere", missed, len(asked))
	}
}
