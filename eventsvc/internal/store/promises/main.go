// Command promises runs the tests of each promise of the store in their long
// forms, and prints one line for each. The promises and their tests are the
// table in deploy/docs/storage.md.
//
//	go run ./internal/store/promises [-only R1,R5] [-short]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// page is where the table is, seen from the module's root.
const page = "../deploy/docs/storage.md"

// A promise is one row of the table.
type promise struct {
	id, text string
	tests    []test
}

// A test is a link in the row: to a file, relative to the page.
type test struct{ name, file string }

var (
	row  = regexp.MustCompile(`(?m)^\| (R\d+) \| (.+?) \| (.+?) \|$`)
	link = regexp.MustCompile("\\[`(Test[^`]+)`\\]\\(([^)]+)\\)")
)

// read reads the table of a page.
func read(page []byte) (all []promise) {
	for _, m := range row.FindAllSubmatch(page, -1) {
		p := promise{id: string(m[1]), text: string(m[2])}
		for _, l := range link.FindAllSubmatch(m[3], -1) {
			p.tests = append(p.tests, test{string(l[1]), string(l[2])})
		}
		all = append(all, p)
	}
	return all
}

func main() {
	only := flag.String("only", "", "promises to run, separated by commas; default: all")
	short := flag.Bool("short", false, "the forms that go test runs, which take seconds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	text, err := os.ReadFile(page)
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(2)
	}
	failed := false
	for _, p := range read(text) {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), p.id) {
			continue
		}
		start := time.Now()
		verdict, said := "kept", p.run(ctx, !*short)
		if said != "" {
			verdict, failed = "BROKEN", true
		}
		fmt.Printf("%-4s %-6s %8s  %s\n%s", p.id, verdict, time.Since(start).Round(time.Second), p.text, said)
	}
	if failed {
		os.Exit(1)
	}
}

// run runs the tests of a promise, a package at a time, and returns what they
// say if they fail.
func (p promise) run(ctx context.Context, long bool) string {
	byPackage := map[string][]string{}
	for _, t := range p.tests {
		dir := filepath.Dir(filepath.Join(filepath.Dir(page), t.file))
		name, _, _ := strings.Cut(t.name, "/")
		byPackage[dir] = append(byPackage[dir], name)
	}
	var said bytes.Buffer
	for dir, names := range byPackage {
		args := []string{"test", "-count=1", "-timeout=2h", "-run", "^(" + strings.Join(names, "|") + ")$", "."}
		if long && hasLongForms(dir) {
			args = append(args, "-args", "-long")
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(&said, "%s%v\n", out, err)
		}
	}
	return said.String()
}

// hasLongForms reports whether the tests of a package know the flag.
func hasLongForms(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return err == nil && slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && bytes.Contains(text, []byte(`flag.Bool("long"`))
	})
}
