package console

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The forms in which modules import and export. Those of the console use no others, which a test makes sure of.
var (
	importLine  = regexp.MustCompile(`^import (\{.*\}|\* as \w+) from "(.+)";$`)
	commentLine = regexp.MustCompile(`^\s*(//.*|/\*\*.*?\*/|/\*\*.*|\*.*)`)
	exportLine  = regexp.MustCompile(`^export ((?:async )?(?:function|class|const) (\w+).*)$`)
	fontLine    = regexp.MustCompile(`url\("\.\./(fonts/[^"]+)"\)`)
)

// bundleModules puts a module and those that it imports into one, so that a browser asks for one file instead of
// sixty. Each module is a function that is called once and returns what it exports. Comments and indentation are left
// out.
func bundleModules(entry string, contents map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	var under []string // the modules that wait for those that they import
	done := map[string]bool{}
	out.WriteString("const modules = {};\n")
	var add func(name string) error
	add = func(name string) error {
		switch {
		case done[name]:
			return nil
		case slices.Contains(under, name):
			return fmt.Errorf("console: modules import each other: %s", strings.Join(append(under, name), ", "))
		case contents[name] == nil:
			return fmt.Errorf("console: there is no module %s", name)
		}
		under = append(under, name)
		var body strings.Builder
		var exports []string
		for line := range strings.Lines(string(contents[name])) {
			line = strings.TrimSpace(commentLine.ReplaceAllString(line, ""))
			if line == "" {
				continue
			}
			if m := importLine.FindStringSubmatch(line); m != nil {
				from := path.Join(path.Dir(name), m[2])
				if err := add(from); err != nil {
					return err
				}
				names := strings.TrimPrefix(strings.ReplaceAll(m[1], " as ", ": "), "*: ")
				line = fmt.Sprintf("const %s = modules[%q];", names, from)
			} else if m := exportLine.FindStringSubmatch(line); m != nil {
				line = m[1]
				exports = append(exports, m[2])
			}
			body.WriteString(line + "\n")
		}
		fmt.Fprintf(&out, "modules[%q] = (() => {\n%sreturn { %s };\n})();\n", name, body.String(), strings.Join(exports, ", "))
		under, done[name] = under[:len(under)-1], true
		return nil
	}
	err := add(entry)
	return out.Bytes(), err
}

// bundleStyles puts style sheets into one. The fonts that they name get the names that they are served with.
func bundleStyles(names []string, contents map[string][]byte, served func(name string) string) []byte {
	var out bytes.Buffer
	for _, name := range names {
		out.Write(fontLine.ReplaceAllFunc(contents[name], func(url []byte) []byte {
			return []byte(`url("` + served(string(fontLine.FindSubmatch(url)[1])) + `")`)
		}))
	}
	return out.Bytes()
}
