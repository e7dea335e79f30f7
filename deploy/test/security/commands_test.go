package security

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```")
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	// called is a call of one of the programs, up to the next operator of the shell.
	called     = regexp.MustCompile(`(?:^|[ ($"])(?:bin/|/usr/local/bin/)?(eventsvc|tokensvc) ([^|;&<>()\n]+)`)
	notCalls   = regexp.MustCompile(`(eventsvc|tokensvc) (is|has) `) // messages
	aWord      = regexp.MustCompile(`^[a-z][a-z-]*$`)
	aFlag      = regexp.MustCompile(`^--?[a-zA-Z][a-zA-Z0-9-]*`)
	flagOfHelp = regexp.MustCompile(`--(?:\[no-\])?[a-z][a-z0-9-]*|(?:^|\s)-[a-zA-Z],`)
)

// A program is one of the services, and what the help of its commands says.
type program struct {
	path string
	help map[string]string // by the words of a call
}

// TestCommandsOfPages: the commands and flags of every call in a page exist, also in blocks that no test runs.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	programs := map[string]*program{}
	for _, name := range []string{"eventsvc", "tokensvc"} {
		p := &program{path: filepath.Join(t.TempDir(), name), help: map[string]string{}}
		if err := testenv.Build(filepath.Join(root, name), p.path); err != nil {
			t.Fatal(err)
		}
		programs[name] = p
	}
	calls := 0
	for _, page := range tracked(t) {
		if filepath.Ext(page) != ".md" || strings.HasPrefix(page, "deploy/test/") {
			continue
		}
		for _, line := range codeOf(read(t, page)) {
			if notCalls.MatchString(line) {
				continue
			}
			for _, call := range called.FindAllStringSubmatch(line, -1) {
				name, args := call[1], strings.Fields(call[2])
				for len(args) > 0 && programs[args[0]] != nil { // the first one is a container or a unit
					name, args = args[0], args[1:]
				}
				if len(args) == 0 || !aWord.MatchString(args[0]) {
					continue
				}
				calls++
				programs[name].check(t, page+": "+name, args)
			}
		}
	}
	if calls < 300 {
		t.Errorf("%d calls were found", calls)
	}
}

// codeOf returns the lines of the blocks for a shell, and the spans, of a page. A line that ends in a backslash goes on
// with the next.
func codeOf(page string) (lines []string) {
	page = strings.ReplaceAll(page, `\|`, "|")
	for _, block := range codeBlock.FindAllStringSubmatch(page, -1) {
		if slices.Contains([]string{"", "sh", "compose"}, block[1]) {
			lines = append(lines, strings.Split(strings.ReplaceAll(block[2], "\\\n", " "), "\n")...)
		}
	}
	for _, span := range codeSpan.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		lines = append(lines, span[1])
	}
	return lines
}

func (p *program) check(t *testing.T, where string, args []string) {
	t.Helper()
	help := p.helpOf(args)
	if help == "" {
		t.Errorf("%s has no command %s", where, args[0])
		return
	}
	known := map[string]bool{}
	for _, name := range flagOfHelp.FindAllString(help, -1) {
		known[strings.Trim(strings.Replace(name, "[no-]", "", 1), " \n,")] = true
		known[strings.Replace(name, "[no-]", "no-", 1)] = true
	}
	for _, arg := range args {
		if arg == "--" {
			return
		}
		if name := aFlag.FindString(arg); name != "" && !known[name] {
			t.Errorf("%s %s: there is no %s", where, strings.Join(args, " "), name)
		}
	}
}

// helpOf returns the help of the command that the first words name, or nothing.
func (p *program) helpOf(args []string) string {
	words := args[:1]
	if len(args) > 1 && aWord.MatchString(args[1]) {
		words = args[:2]
	}
	for ; len(words) > 0; words = words[:len(words)-1] {
		key := strings.Join(words, " ")
		if _, asked := p.help[key]; !asked {
			ask := append(append([]string{}, words...), "--help")
			if key == "serve" {
				ask = append(ask, "all")
			}
			out, err := exec.Command(p.path, ask...).Output()
			if _, usage, _ := strings.Cut(string(out), "Usage: "+filepath.Base(p.path)+" "); err == nil && strings.HasPrefix(usage, key) {
				p.help[key] = string(out)
			} else {
				p.help[key] = ""
			}
		}
		if p.help[key] != "" {
			return p.help[key]
		}
	}
	return ""
}
