package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

// TestCompletion loads the scripts into real shells and reads the completions that the tab key would show.
func TestCompletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"events.json", "events.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(t *testing.T, shell string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), shell, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	cases := []struct{ line, want string }{
		{"eventsvc ge", "get"},
		{"eventsvc tail --wait", "--wait-for="},
		{"eventsvc get --output=n", "ndjson"},
		{"eventsvc get -o ", "json ndjson table yaml"},
		{"eventsvc completion z", "zsh"},
		{"eventsvc record --file=events.y", "events.yaml"},
		{"eventsvc record -f ev", "events.json events.yaml"},
		{"eventsvc --listen-h", "--listen-http= --listen-https="},
		{"tokensvc keys r", "rotate"},
		{"tokensvc token fetch --token", "--token-url="},
	}
	t.Run("bash", func(t *testing.T) {
		t.Parallel()
		// Calls the function of the script as readline does, with the line and the cursor, for the command that it is
		// registered for.
		const ask = `
for program in eventsvc tokensvc; do source <($program completion bash); complete -p $program >&2; done
COMP_LINE=$1 COMP_POINT=${#1}
spec=$(complete -p "${1%% *}")
[[ $spec =~ -F\ ([^ ]+) ]]
"${BASH_REMATCH[1]}"
echo "${COMPREPLY[@]}"`
		testenv.Tool(t, "bash")
		for _, c := range cases {
			out := strings.Split(strings.TrimSpace(run(t, "bash", "-c", ask, "bash", c.line)), "\n")
			if got := out[len(out)-1]; got != c.want {
				t.Errorf("%q: %q, want %q", c.line, got, c.want)
			}
		}
	})
	t.Run("fish", func(t *testing.T) {
		t.Parallel()
		testenv.Tool(t, "fish")
		for _, c := range cases {
			out := run(t, "fish", "--no-config", "-c", `for p in eventsvc tokensvc; $p completion fish | source; end; complete -C `+"'"+c.line+"'")
			var found []string
			for _, word := range strings.Fields(out) {
				found = append(found, word[strings.LastIndex("="+word[:len(word)-1], "="):])
			}
			if got := strings.Join(found, " "); got != c.want {
				t.Errorf("%q: %q, want %q", c.line, got, c.want)
			}
		}
	})
	t.Run("zsh", func(t *testing.T) {
		t.Parallel()
		testenv.Tool(t, "zsh")
		// compadd is replaced by one that prints, because zle needs a terminal.
		const ask = `
compdef() { }; _files() { print -l -- ${PREFIX}*(N) }
compset() { PREFIX=${PREFIX#*=} }
compadd() { while [[ $1 == -* && $1 != -- ]]; do [[ $1 == -S ]] && shift; shift; done; shift; print -l -- $@ }
for p in eventsvc tokensvc; do source <($p completion zsh); done
words=("${(@s: :)1}"); CURRENT=${#words}; PREFIX=${words[CURRENT]}
_${words[1]}`
		for _, c := range cases {
			var found []string
			for _, word := range strings.Fields(run(t, "zsh", "-f", "-c", ask, "zsh", c.line)) {
				found = append(found, word[strings.LastIndex("="+word[:len(word)-1], "="):])
			}
			if got := strings.Join(found, " "); got != c.want {
				t.Errorf("%q: %q, want %q", c.line, got, c.want)
			}
		}
	})
}
