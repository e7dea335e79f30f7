package logcli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown is a block of commands of logcli in a page, and the output below it, if the page shows one.
var shown = regexp.MustCompile("(?ms)^```logcli\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?")

// TestPage runs the commands of logcli in the page about Grafana. Each prints what the page shows, of the events of the
// tutorial.
func TestPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	env := append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "TZ=UTC",
		"EVENTSVC_SERVER="+s.plain, "EVENTSVC_TOKEN_URL="+s.tokens+"/oauth2/token", "EVENTSVC_CLIENT_ID=demo",
		"EVENTSVC_CLIENT_SECRET_FILE="+filepath.Join(root, "deploy/local/demo-secret"))
	run := func(script string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
		cmd.Dir, cmd.Env = root, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v in\n%s\n%s", err, script, out)
		}
		return string(out)
	}
	run("deploy/examples/incident.sh | eventsvc record -f -")
	text, err := os.ReadFile(filepath.Join(root, "deploy/docs/how-to/grafana.md"))
	if err != nil {
		t.Fatal(err)
	}
	outputs, before := 0, ""
	for _, block := range shown.FindAllStringSubmatch(string(text), -1) {
		before += strings.ReplaceAll(block[1], "http://127.0.0.1:8080", s.plain)
		if block[2] == "" {
			continue
		}
		outputs++
		got := run(before)
		before = regexp.MustCompile(`(?m)^logcli.*\n`).ReplaceAllString(before, "") // settings stay
		if lines := regexp.MustCompile(`[ \t]+`); strings.TrimSpace(lines.ReplaceAllString(got, " ")) != strings.TrimSpace(lines.ReplaceAllString(block[2], " ")) {
			t.Errorf("the page shows\n%s\nand this prints\n%s\n%s", block[2], got, block[1])
		}
	}
	if outputs != 2 {
		t.Errorf("%d outputs were compared", outputs)
	}
}
