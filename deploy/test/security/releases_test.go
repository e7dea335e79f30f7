package security

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestReleaseCommits: the release notes name commits that this one has, because readers ask git about them.
func TestReleaseCommits(t *testing.T) {
	t.Parallel()
	if shallow, err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "--is-shallow-repository").Output(); err != nil || strings.TrimSpace(string(shallow)) != "false" {
		t.Logf("the history is not here: %s %v", shallow, err)
		return
	}
	found := 0
	for row := range strings.Lines(read(t, "deploy/docs/reference/releases.md")) {
		cells := strings.Split(row, "|")
		if len(cells) < 5 {
			continue
		}
		for _, commit := range regexp.MustCompile("`([0-9a-f]{7})`").FindAllStringSubmatch(cells[1], -1) {
			found++
			if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "merge-base", "--is-ancestor", commit[1], "HEAD").CombinedOutput(); err != nil {
				t.Errorf("%s is no commit of this history: %v %s", commit[1], err, out)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d commits are found", found)
	}
}
