// Command promises runs the tests of each promise of the store in their long
// forms, and prints one line for each. The promises and their tests are the
// table in deploy/docs/explanation/storage.md.
//
//	go run ./internal/store/promises [-only R1,R5] [-short] [-compress]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
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
const page = "../deploy/docs/explanation/storage.md"

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
	compress := flag.Bool("compress", false, "compress log files as soon as they are sealed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	text, err := os.ReadFile(page)
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(2)
	}
	r := &runner{out: os.Stdout, long: !*short, compress: *compress, binaries: map[string]string{}, done: map[string]finished{}}
	code := r.all(ctx, read(text), *only)
	if r.tmp != "" {
		_ = os.RemoveAll(r.tmp)
	}
	os.Exit(code)
}

// all runs promises, prints a line for each as soon as it is known, and returns
// the exit code.
func (r *runner) all(ctx context.Context, promises []promise, only string) (code int) {
	for _, p := range promises {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.id) {
			continue
		}
		var sum outcome
		for _, t := range p.tests {
			sum.add(r.run(ctx, p.id, t))
		}
		verdict := "kept"
		switch {
		case sum.failed != "":
			verdict, code = "BROKEN", 1
		case len(sum.skipped) > 0:
			verdict = "in part"
		}
		fmt.Fprintf(r.out, "%-4s %-7s %7s  %s", p.id, verdict, sum.took.Round(time.Second), p.text)
		for _, note := range append(sum.skipped, sum.notes...) {
			fmt.Fprint(r.out, "; ", note)
		}
		fmt.Fprintf(r.out, "\n%s", sum.failed)
	}
	return code
}

// A runner runs each test once, one after the other, however many promises name
// it: those with a million events need the machine for themselves. The time of
// the test is in the line of the first promise, and the others say so.
type runner struct {
	out      io.Writer
	long     bool
	compress bool
	tmp      string
	binaries map[string]string   // of the tests, by directory
	done     map[string]finished // by directory and name
}

// finished is what came of a test, and the promise it was run for.
type finished struct {
	outcome
	promise string
}

// again is the outcome for another promise that the test shows.
func (f finished) again(name string) outcome {
	said := name + " as for " + f.promise
	o := outcome{skipped: f.skipped, notes: []string{said}}
	if f.failed != "" {
		o.failed = said + "\n"
	}
	return o
}

// outcome is what came of a test, or of several.
type outcome struct {
	took    time.Duration
	failed  string   // all that was printed, if a test failed
	skipped []string // tests that could not run here, with the reason
	notes   []string // what the tests have counted
}

func (o *outcome) add(more outcome) {
	o.took += more.took
	o.failed += more.failed
	o.skipped = append(o.skipped, more.skipped...)
	o.notes = append(o.notes, more.notes...)
}

// run runs a test for a promise, unless it has been run.
func (r *runner) run(ctx context.Context, promise string, t test) outcome {
	dir := filepath.Dir(filepath.Join(filepath.Dir(page), t.file))
	name, _, _ := strings.Cut(t.name, "/")
	if f, ok := r.done[dir+name]; ok {
		return f.again(name)
	}
	binary, err := r.build(ctx, dir)
	if err != nil {
		return outcome{failed: err.Error() + "\n"}
	}
	args := []string{"-test.run=^" + name + "$", "-test.v", "-test.timeout=1h"}
	if r.long && knows(dir, "long") {
		args = append(args, "-long")
	}
	if r.compress && knows(dir, "compress") {
		args = append(args, "-compress")
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	start := time.Now()
	out, err := cmd.CombinedOutput()
	o := outcome{took: time.Since(start)}
	if err != nil {
		o.failed = fmt.Sprintf("%s%s: %v\n", out, name, err)
	}
	o.notes, o.skipped = remarks(out)
	r.done[dir+name] = finished{o, promise}
	return o
}

// build makes the tests of a package a program.
func (r *runner) build(ctx context.Context, dir string) (binary string, err error) {
	if binary, ok := r.binaries[dir]; ok {
		return binary, nil
	}
	if r.tmp == "" {
		if r.tmp, err = os.MkdirTemp("", "promises"); err != nil {
			return "", err
		}
	}
	binary = filepath.Join(r.tmp, fmt.Sprint(len(r.binaries)))
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s%w", out, err)
	}
	r.binaries[dir] = binary
	return binary, nil
}

var (
	logged  = regexp.MustCompile(`^ +\w+_test\.go:\d+: (.*)$`)
	skipped = regexp.MustCompile(`^ *--- SKIP: (\S+)`)
)

// remarks finds in the output of -test.v what the tests have counted, and which
// were skipped: what such a test has said last is why.
func remarks(out []byte) (notes, skips []string) {
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := logged.FindStringSubmatch(line); m != nil {
			notes = append(notes, m[1])
		}
		if m := skipped.FindStringSubmatch(line); m != nil {
			reason := "for no reason"
			if n := len(notes); n > 0 {
				reason, notes = notes[n-1], notes[:n-1]
			}
			skips = append(skips, m[1]+" skipped: "+reason)
		}
	}
	return notes, skips
}

// knows reports whether the tests of a package know a flag.
func knows(dir, name string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return err == nil && slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte(`flag.Bool("`+name+`"`))
	})
}
