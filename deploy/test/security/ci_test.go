package security

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// verdict is what the filter of .ci/run says about the output of go test -v.
func verdict(t *testing.T, said string) (shown string, passed bool) {
	t.Helper()
	awk := exec.Command("awk", "-f", ".ci/tests.awk")
	awk.Dir, awk.Stdin = root, strings.NewReader(said)
	out, err := awk.CombinedOutput()
	return string(out), err == nil
}

// TestSkippedTestsFailCI: a skipped test fails the stage unless .ci/skips lists it. The whole output of a failed test
// is shown.
func TestSkippedTestsFailCI(t *testing.T) {
	t.Parallel()
	const passes = "=== RUN   TestA\n    a_test.go:1: fine\n--- PASS: TestA (0.00s)\nPASS\nok  \tp/a\t1.0s\n"
	for name, test := range map[string]struct {
		said, want string
		passed     bool
	}{
		"passed":       {passes, "ok  \tp/a\t1.0s\n", true},
		"skipped":      {"=== RUN   TestB\n    b_test.go:1: no disk\n--- SKIP: TestB (0.00s)\n" + passes, "b_test.go:1: no disk\n--- SKIP: TestB", false},
		"part skipped": {"=== RUN   TestB\n    --- SKIP: TestB/part (0.00s)\n" + passes, "--- SKIP: TestB/part", false},
		"listed":       {"--- SKIP: TestChild (0.00s)\n    --- SKIP: FuzzPaths/seed#1 (0.00s)\n" + passes, "ok  \tp/a\t1.0s\n", true},
		"failed":       {"    c_test.go:1: why\n--- FAIL: TestC (0.00s)\nFAIL\nFAIL\tp/c\t1.0s\n", "c_test.go:1: why\n--- FAIL: TestC", true}, // make has failed
		"no compiler":  {"# p/d\nd.go:1: undefined\nFAIL\tp/d [build failed]\n", "d.go:1: undefined", true},
	} {
		if shown, passed := verdict(t, test.said); passed != test.passed || !strings.Contains(shown, test.want) {
			t.Errorf("%s: passed %t, want %t, with %q in\n%s", name, passed, test.passed, test.want, shown)
		}
	}
	if shown, _ := verdict(t, passes); strings.Contains(shown, "fine") {
		t.Errorf("of a package that passes more is shown than its last line:\n%s", shown)
	}
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// TestSkipsExist: every test in .ci/skips exists and has a reason.
func TestSkipsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, "_test.go") {
			for _, found := range testFunction.FindAllStringSubmatch(read(t, name), -1) {
				known[found[1]] = true
			}
		}
	}
	for line := range strings.Lines(read(t, ".ci/skips")) {
		if words := strings.Fields(line); words[0] != "#" && (!known[words[0]] || len(words) < 3) {
			t.Errorf("there is no such test, or no reason: %s", line)
		}
	}
}

// TestNoTestIsLostToTheRaceDetector: make test runs without it, so that tests which are kept from it run there, and
// those which only it runs would be lost.
func TestNoTestIsLostToTheRaceDetector(t *testing.T) {
	t.Parallel()
	constraint := regexp.MustCompile(`(?m)^//go:build .*\brace\b.*$`)
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text := read(t, name)
		if found := constraint.FindString(text); found != "" && testFunction.MatchString(text) && found != "//go:build !race" {
			t.Errorf("%s: %q, want %q", name, found, "//go:build !race")
		}
	}
	for target, want := range map[string]bool{"test-all": false, "race": true} {
		if out := output(t, root, "make", "--no-print-directory", "--dry-run", target); strings.Contains(out, " -race ") != want {
			t.Errorf("make %s: under the race detector %t, want %t\n%s", target, !want, want, out)
		}
	}
}

// TestEveryModuleIsTested: make test-all runs every test once, and dependabot looks at every module.
func TestEveryModuleIsTested(t *testing.T) {
	t.Parallel()
	var run []string // the folders in which make test-all runs go test ./...
	for _, loop := range regexp.MustCompile(`for m in ([^;]*);`).FindAllStringSubmatch(
		output(t, root, "make", "--no-print-directory", "--dry-run", "test-all"), -1) {
		run = append(run, strings.Fields(loop[1])...)
	}
	updates := read(t, ".github/dependabot.yml")
	files := tracked(t)
	module := func(dir string) string { // the folder of the go.mod that a folder belongs to
		for dir != "." && !slices.Contains(files, path.Join(dir, "go.mod")) {
			dir = path.Dir(dir)
		}
		return dir
	}
	for _, name := range files {
		dir, file := path.Split(name)
		dir = path.Clean(dir)
		if (strings.HasSuffix(file, "Dockerfile") || file == "go.mod") &&
			!regexp.MustCompile(`[\s\[]/`+regexp.QuoteMeta(strings.TrimPrefix(dir, "."))+`[\s,\]]`).MatchString(updates) {
			t.Errorf("dependabot does not look at %s", name)
		}
		if file == "go.mod" && dir != "deploy/tools" && !slices.ContainsFunc(run, func(from string) bool { return module(from) == dir }) {
			t.Errorf("make test-all leaves out %s", dir)
		}
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		times := 0
		for _, from := range run {
			if module(from) == module(dir) && strings.HasPrefix(dir+"/", from+"/") {
				times++
			}
		}
		if times != 1 {
			t.Errorf("make test-all runs %s %d times", name, times)
		}
	}
}

// TestWorkflows: the targets of make and the stages of .ci/run that workflows and pages for people name exist. That the
// workflows are well-formed is checked by actionlint, in make lint.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	named := func(pattern, text string) map[string]bool {
		names := map[string]bool{}
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			for word := range strings.FieldsSeq(found[1]) {
				names[word] = true
			}
		}
		return names
	}
	targets := named(`(?m)^([a-z0-9]+):.*## `, read(t, "Makefile"))
	stages := named(`(?m)^([a-z0-9]+)\(\) `, read(t, ".ci/run"))
	workflows := 0
	for _, name := range tracked(t) {
		workflow := strings.HasPrefix(name, ".github/workflows/")
		if !workflow && name != ".github/CONTRIBUTING.md" && name != "README.md" {
			continue
		}
		text := read(t, name)
		if workflow {
			workflows++
			if !regexp.MustCompile(`(?m)^permissions:\n  contents: read\n`).MatchString(text) {
				t.Errorf("%s does not begin with the least permissions", name)
			}
		}
		const command = `(?:run: |'|&& |` + "`" + `)(?:sudo env "PATH=\$PATH" "HOME=\$HOME" )?`
		for target := range named(command+`make((?: [a-z0-9]+)+)`, text) {
			if !targets[target] {
				t.Errorf("%s: there is no make %s", name, target)
			}
		}
		for stage := range named(command+`\.ci/run((?: [a-z0-9]+)+)`, text) {
			if !stages[stage] {
				t.Errorf("%s: .ci/run has no stage %s: %v", name, stage, slices.Sorted(maps.Keys(stages)))
			}
		}
	}
	if workflows < 3 || len(targets) < 20 || len(stages) < 6 {
		t.Errorf("%d workflows, %d targets, %d stages", workflows, len(targets), len(stages))
	}
}

// TestRun runs .ci/run with programs that only say what they are called for. All stages run once, those that need the
// images after them. What a stage prints stays together, and one that fails is in the verdict. Tests that fail are run
// once.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for name, text := range map[string]string{
		".ci/run": read(t, ".ci/run"), ".ci/tests.awk": read(t, ".ci/tests.awk"), ".ci/skips": read(t, ".ci/skips"),
		"bin/go":   "#!/bin/sh\necho \"tests in $(basename $PWD)\"\ntest $(basename $PWD) != bad || { echo 'FAIL\tp\t1s'; exit 1; }\necho 'ok\tp\t1s'\n",
		"bin/make": "#!/bin/sh\necho \"first of $1\"\necho \"ok\tmake $1\t1s\"\n",
		"bin/curl": "#!/bin/sh\nexit 1\n", "bin/docker": "#!/bin/sh\n", "bin/apt-get": "#!/bin/sh\n", "bin/sudo": "#!/bin/sh\n",
		"deploy/test/bad/x": "", "deploy/test/good/x": "", "deploy/test/e2e/x": "", "deploy/test/conformance/x": "", "deploy/test/alertmanager/x": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := func(stages ...string) (said string, passed bool) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, ".ci/run"), stages...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err == nil
	}
	said, passed := run()
	for _, stage := range []string{
		"PASS: setup", "PASS: lint", "PASS: images", "PASS: test", "PASS: race", "PASS: e2e", "PASS: cluster", "PASS: replicas", "PASS: verify", "SKIP: vuln",
		"FAIL: deploy/test/bad", "PASS: deploy/test/good", "PASS: deploy/test/e2e", "PASS: deploy/test/conformance", "PASS: deploy/test/alertmanager",
	} {
		if strings.Count(said, "--- "+stage+" (") != 2 { // when it ends, and in the verdict
			t.Errorf("%s is not said", stage)
		}
	}
	if passed || strings.Count(said, "tests in bad\n") != 1 || !strings.HasSuffix(said, "\n13 passed, 1 failed, 1 skipped\n") ||
		!strings.Contains(said, "=== RUN   lint\nfirst of lint\nok\tmake lint\t1s\n--- PASS: lint (") ||
		strings.Index(said, "--- PASS: images (") > strings.Index(said, "--- PASS: e2e (") {
		t.Errorf("passed %t:\n%s", passed, said)
	}
	if said, passed := run("lint", "deploy/test/good"); !passed || !strings.HasSuffix(said, "\n2 passed, 0 failed\n") {
		t.Errorf("passed %t:\n%s", passed, said)
	}
}

// TestNoArchitecture: no file is compiled for some architectures only, so that make lint looks at one of each system.
func TestNoArchitecture(t *testing.T) {
	t.Parallel()
	some := regexp.MustCompile(`_(amd64|arm64)(_test)?\.go$`)
	constraint := regexp.MustCompile(`(?m)^//go:build .*\b(amd64|arm64)\b`)
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, ".go") && (some.MatchString(name) || constraint.MatchString(read(t, name))) {
			t.Errorf("%s is compiled for some architectures only: let make lint vet each", name)
		}
	}
}

// TestReleaseNotes: the workflow of a release goes on only if the version has notes.
func TestReleaseNotes(t *testing.T) {
	t.Parallel()
	workflow, err := os.ReadFile(filepath.Join(root, ".github/workflows/release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	step := regexp.MustCompile(`(?m)- run: (grep .*releases\.md)`).FindSubmatch(workflow)
	if step == nil {
		t.Fatal("no step looks for the notes")
	}
	for tag, want := range map[string]bool{"v0.1.0": true, "v0.1": false, "v0.1.01": false, "v9.9.9": false} {
		sh := exec.Command("sh", "-c", string(step[1]))
		sh.Dir, sh.Env = root, append(os.Environ(), "GITHUB_REF_NAME="+tag)
		if out, err := sh.CombinedOutput(); (err == nil) != want {
			t.Errorf("%s: %v, %s", tag, err, out)
		}
	}
}
