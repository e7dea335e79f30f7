package security

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the list of dependencies")

// document is where the dependencies are listed.
const document = "deploy/docs/reference/dependencies.md"

// tests is the end of the document.
const tests = `
The SBOM of each program lists what is linked through these, under MIT, Apache-2.0, BSD and ISC. Modules that only tests and tools need are
in the go.mod files below deploy, under licences without conditions. Three programs are only run, and not linked: logcli of
github.com/grafana/loki/v3 (AGPL-3.0), github.com/prometheus/alertmanager (Apache-2.0) and github.com/axllent/mailpit (MIT).
`

// modules are those of the repository. The first three make the services, the
// others test and show them. deploy/tools, deploy/test/logcli, deploy/test/alertmanager
// and deploy/test/apiserver are not among them: they pin programs.
var modules = []string{
	"shared", "tokensvc", "eventsvc", "deploy", "deploy/test", "deploy/test/chart",
}

func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s in %s: %v\n%s", name, strings.Join(args, " "), dir, err, stderr.Bytes())
	}
	return string(out)
}

// dependency is a module that one of ours requires.
type dependency struct {
	path, version, licence string
	uses                   []string // "module: reason"
}

// TestDependencies: every direct dependency has a reason in its go.mod, and a
// licence that lets everybody use it; the list in the documentation is true.
func TestDependencies(t *testing.T) {
	t.Parallel()
	direct := map[string]*dependency{}
	for _, module := range modules {
		for _, d := range required(t, module) {
			key := d.path + "@" + d.version
			if direct[key] == nil {
				d.licence = licence(t, d.path, folder(t, module, d.path))
				direct[key] = d
				continue
			}
			direct[key].uses = append(direct[key].uses, d.uses...)
		}
	}
	var text strings.Builder
	text.WriteString("# Dependencies\n\nWhat both services are made of. `go test . -update` in `deploy/test/security` writes this page; `go test .` checks it. " +
		"The reasons\nare comments in the `go.mod` files.\n\n## Direct\n\n| module | version | licence | for |\n|---|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(direct)) {
		d := direct[key]
		d.uses = slices.DeleteFunc(d.uses, func(use string) bool { return strings.HasPrefix(use, "deploy") || strings.Contains(use, ": tests: ") })
		if len(d.uses) > 0 {
			fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", d.path, d.version, d.licence, strings.Join(d.uses, "<br>"))
		}
	}
	text.WriteString(tests)
	checkLinked(t)
	if *update {
		if err := os.WriteFile(filepath.Join(root, document), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, document) != text.String() {
		t.Errorf("%s is not what the go.mod files say: run go test . -update in deploy/test/security", document)
	}
}

// folder is where a dependency of a module lies. It is fetched if nothing that
// was built here so far has needed it.
func folder(t *testing.T, module, path string) string {
	t.Helper()
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(output(t, filepath.Join(root, module), "go", "mod", "download", "-json", path)), &found); err != nil {
		t.Fatal(err)
	}
	return found.Dir
}

// required are the direct dependencies of a module with their reasons, which
// are the comments above them.
func required(t *testing.T, module string) (list []*dependency) {
	t.Helper()
	reason, block := "", ""
	for line := range strings.Lines(read(t, module+"/go.mod")) {
		switch text := strings.TrimSpace(line); {
		case text == ")":
			block = ""
		case strings.HasSuffix(text, " ("):
			block = text
		}
		if block == "exclude (" {
			continue
		}
		if single, ok := strings.CutPrefix(line, "require "); ok { // not in a block
			line = "\t" + single
		}
		words := strings.Fields(line)
		switch text, comment := strings.CutPrefix(strings.TrimSpace(line), "//"); {
		case comment:
			reason = strings.TrimSpace(text)
		case !strings.HasPrefix(line, "\t") || len(words) != 2 || strings.HasPrefix(words[0], "tidings.example/"):
			reason = ""
		default:
			if reason == "" {
				t.Errorf("%s/go.mod does not say why %s is there", module, words[0])
			}
			list = append(list, &dependency{path: words[0], version: words[1], uses: []string{module + ": " + reason}})
			reason = ""
		}
	}
	return list
}

// checkLinked reads the licences of modules that are linked into the services without being direct dependencies.
func checkLinked(t *testing.T) {
	t.Helper()
	for _, service := range []string{"tokensvc", "eventsvc"} {
		const format = "{{with .Module}}{{.Path}} {{.Dir}}{{end}}"
		for line := range strings.Lines(output(t, filepath.Join(root, service), "go", "list", "-deps", "-f", format, ".")) {
			if words := strings.Fields(line); len(words) == 2 && !strings.HasPrefix(words[0], "tidings.example/") {
				licence(t, words[0], words[1])
			}
		}
	}
}

// licences are recognized by words that only they have. All of them allow use,
// change and redistribution without conditions on our own code.
var licences = []struct {
	name string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`(?i)Apache License Version 2\.0`)},
	{"MIT", regexp.MustCompile(`(?i)Permission is hereby granted, free of charge, to any person obtaining a copy`)},
	{"BSD-3-Clause", regexp.MustCompile(`(?is)Redistribution and use in source and binary forms.*(neither the names?|the names?) of`)},
	{"BSD-2-Clause", regexp.MustCompile(`(?i)Redistribution and use in source and binary forms`)},
	{"ISC", regexp.MustCompile(`(?i)Permission to use, copy, modify, and(/or)? distribute this software`)},
	{"Unlicense", regexp.MustCompile(`(?i)free and unencumbered software released into the public domain`)},
}

// licence reads a module's licence from its files.
func licence(t *testing.T, module, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(dir), "*"))
	if err != nil || strings.TrimSpace(dir) == "" {
		t.Fatalf("%s is not in the module cache (%v): run go mod download", module, err)
	}
	var names []string
	for _, file := range files {
		base := strings.ToUpper(filepath.Base(file))
		if !strings.HasPrefix(base, "LICENSE") && !strings.HasPrefix(base, "LICENCE") && !strings.HasPrefix(base, "COPYING") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a directory
		}
		text := strings.Join(strings.Fields(string(data)), " ")
		for _, l := range licences {
			if l.text.MatchString(text) && !slices.Contains(names, l.name) {
				names = append(names, l.name)
				break
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s: no licence that is known to be free of conditions", module)
	}
	return strings.Join(names, ", ")
}

// TestOneVersion: modules that need the same library need the same version of it, so that its packages, and those that
// import them, are compiled once for all. go work sync brings versions together.
func TestOneVersion(t *testing.T) {
	t.Parallel()
	requirement := regexp.MustCompile(`(?m)^(?:require )?\t?([\w./~-]+) (v\S+)`)
	excluded := regexp.MustCompile(`(?s)exclude \(.*?\)`)
	apart := []string{ // Prometheus, which only tests need, needs newer ones, and these another module
		"github.com/prometheus/common", "github.com/prometheus/procfs",
	}
	versions, where := map[string]string{}, map[string]string{}
	for _, module := range append(slices.Clone(modules), "deploy/test/apiserver") {
		for _, found := range requirement.FindAllStringSubmatch(excluded.ReplaceAllString(read(t, module+"/go.mod"), ""), -1) {
			library, version := found[1], found[2]
			if before, ok := versions[library]; ok && before != version && !slices.Contains(apart, library) {
				t.Errorf("%s is %s in %s and %s in %s", library, before, where[library], version, module)
			}
			versions[library], where[library] = version, module
		}
	}
	if len(versions) < 200 {
		t.Errorf("%d libraries are found", len(versions))
	}
}
