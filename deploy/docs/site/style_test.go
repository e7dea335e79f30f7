package site_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// longest is how many words nine of ten sentences of a page have at most.
const longest = 25

// wording is what a page does not say, and what to say.
var wording = []struct {
	banned *regexp.Regexp
	say    string
}{
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
	{regexp.MustCompile(`(?i)\bfor want of\b`), "because there is no"},
	{regexp.MustCompile(`(?i)\bnobody (?:does|has|is)n't\b`), "a sentence without a double negation"},
	{regexp.MustCompile(`(?i)\b(?:who|he that) reads\b`), "readers"},
	{regexp.MustCompile(`(?i)\bof which nobody\b`), "a sentence with its own subject"},
	{regexp.MustCompile(`(?i)\bwhat of\b`), "which part of"},
	{regexp.MustCompile(`(?i)\b(?:that|those|the ones?) of\b`), "the noun itself"},
	{regexp.MustCompile(`(?i)\b(?:do|does|did|says?) so\b`), "the verb and its object"},
	{regexp.MustCompile(`(?:^|[.:;] )That (?:is|was|has|does|can|may|must|means|takes|needs|turns|lets|works|says|holds)\b`), "what that is"},
	{regexp.MustCompile(`(?i)\b(?:be had|of use|shall)\b`), "that it is there, useful, must"},
	{regexp.MustCompile(`(?i)\b(?:is|are) to be [a-z]+ed\b`), "an imperative"},
	{regexp.MustCompile(`(?i)\b(?:simply|easily|obviously|of course)\b`), "nothing"},
	{regexp.MustCompile(`(?i)\b(?:utili[sz]e|leverage)\b`), "use"},
	{regexp.MustCompile(`(?i)\bin order to\b`), "to"},
	{regexp.MustCompile(`(?i)\bplease\b`), "nothing"},
	{regexp.MustCompile(`(?i)\b(?:journal|fold|salvage)\b`), "write-ahead log, checkpoint, failover"},
	{regexp.MustCompile(`\{\{`), "what the template stands for"},
}

// widest is the most columns of a line in a paragraph. Lines of tables and code may be wider.
const widest = 140

// TestStyle: the words and sentences of every page can be read once, and its headings are in order.
func TestStyle(t *testing.T) {
	t.Parallel()
	for _, p := range read(t).Pages() {
		t.Run(p.Source, func(t *testing.T) {
			t.Parallel()
			for _, paragraph := range p.Prose() {
				checkWords(t, p.Source, paragraph)
				checkJoints(t, paragraph)
				if strings.HasPrefix(paragraph, "|") {
					t.Errorf("rows of a table have no head: %s", paragraph)
				}
			}
			checkSentences(t, p.Prose())
			checkHeadings(t, p.Levels())
			checkLines(t, p.Source)
		})
	}
}

// helpText is the help of a flag, a metric or a command.
var (
	helpText    = regexp.MustCompile(`(?:help:|Help: +)"([^"]*)"`)
	commandHelp = regexp.MustCompile("(?s)Help\\(\\) string \\{\n\treturn `(.*?)`")
)

// TestHelpTexts: the help of flags, metrics and commands has the words of the pages, and a command's help begins with
// examples.
func TestHelpTexts(t *testing.T) {
	t.Parallel()
	texts, commands := 0, 0
	for _, module := range []string{"eventsvc", "tokensvc", "shared"} {
		err := filepath.WalkDir(filepath.Join("../../..", module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, help := range helpText.FindAllStringSubmatch(string(code), -1) {
				texts++
				checkWords(t, path, help[1])
			}
			for _, help := range commandHelp.FindAllStringSubmatch(string(code), -1) {
				commands++
				checkWords(t, path, help[1])
				if parts := strings.SplitN(help[1], "\n\n", 3); len(parts) < 2 || !strings.HasPrefix(parts[1], "    ") {
					t.Errorf("%s: a help does not begin with examples:\n%s", path, help[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if texts < 150 || commands < 20 {
		t.Errorf("%d texts of flags and metrics and %d of commands were found", texts, commands)
	}
}

// checkWords reports words that no text should have.
func checkWords(t *testing.T, where, text string) {
	t.Helper()
	for _, w := range wording {
		if found := w.banned.FindString(text); found != "" {
			t.Errorf("%s: %q: say %s instead\n\t%s", where, found, w.say, text)
		}
	}
}

// joint is where a sentence ends and the next one begins small, as what a cut has left over does. Names of files and
// values, which end with a dot or a colon, are no such words.
var joint = regexp.MustCompile(`\. ([a-z][a-z0-9-]*(?:/v1)?)[ ,;)]`)

// small are names that begin a sentence as they are.
var small = []string{"eventsvc", "tokensvc", "kubectl", "kubelogin", "kube-apiserver", "client-go", "cert-manager", "core/v1", "systemd", "nginx", "bolt", "etcd"}

// checkJoints reports sentences that begin small.
func checkJoints(t *testing.T, text string) {
	t.Helper()
	for _, found := range joint.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(small, found[1]) {
			t.Errorf("%q: a sentence begins small\n\t%s", found[0], text)
		}
	}
}

// checkSentences reports the longest sentences of a page if more than one of ten is too long.
func checkSentences(t *testing.T, paragraphs []string) {
	t.Helper()
	var all []string
	for _, paragraph := range paragraphs {
		all = append(all, sentences(paragraph)...)
	}
	slices.SortFunc(all, func(a, b string) int { return len(strings.Fields(b)) - len(strings.Fields(a)) })
	allowed := len(all) / 10
	if len(all) == 0 || len(strings.Fields(all[allowed])) <= longest {
		return
	}
	t.Errorf("of %d sentences, more than %d have more than %d words", len(all), allowed, longest)
	for _, s := range all {
		if n := len(strings.Fields(s)); n > longest {
			t.Logf("%d words: %s", n, s)
		}
	}
}

// sentences splits a paragraph where a sentence ends and the next one, or a code span, begins.
func sentences(paragraph string) (all []string) {
	begin := 0
	for _, end := range regexp.MustCompile(`[.:;!?]\)? +[A-Z0-9\x60-]`).FindAllStringIndex(paragraph, -1) {
		all = append(all, paragraph[begin:end[1]-1])
		begin = end[1] - 1
	}
	return append(all, paragraph[begin:])
}

// checkHeadings reports a second title, and a heading that skips a level.
func checkHeadings(t *testing.T, levels []int) {
	t.Helper()
	before := 0
	for n, level := range levels {
		if level > before+1 || level == 1 && n > 0 {
			t.Errorf("heading %d is of level %d after level %d", n+1, level, before)
		}
		before = level
	}
}

// ends is how the last line of a paragraph or of an item ends, and begins how a line begins before which one ends.
var (
	ends   = regexp.MustCompile("(?:^|[.:!?;)`*…])\n?$")
	begins = regexp.MustCompile("^(?:[-*] .*|\\d{1,2}\\. .*|```.*|)\n?$")
)

// checkLines reports lines of paragraphs and lists that are too wide to read in a diff, and those that end in the
// middle of a sentence.
func checkLines(t *testing.T, source string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", source))
	if err != nil {
		t.Fatal(err)
	}
	code, before := false, ""
	for line := range strings.Lines(string(text) + "\n") {
		begin := strings.TrimLeft(line, " ")
		if begins.MatchString(begin) && !ends.MatchString(before) {
			t.Errorf("a paragraph ends in the middle of a sentence: %s", before)
		}
		if strings.HasPrefix(begin, "```") {
			code = !code
		}
		if n := utf8.RuneCountInString(line) - 1; n > widest && !code && !strings.HasPrefix(begin, "|") && !strings.HasPrefix(line, "    ") {
			t.Errorf("a line has %d columns, more than %d: %s", n, widest, line)
		}
		before = begin
		if code || strings.HasPrefix(line, "    ") || strings.ContainsAny(begin[:1], "|#<") {
			before = ""
		}
	}
}

// TestSentences: sentences are counted where they end.
func TestSentences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"One.": 1, "One. Two.": 2, "Set x.y to 1.5 at once.": 1, "It fails: Look there.": 2, "A, e.g. b, is one.": 1, "(One.) Two": 2,
	} {
		if got := sentences(text); len(got) != want {
			t.Errorf("%q has %d sentences, want %d: %q", text, len(got), want, got)
		}
	}
}
