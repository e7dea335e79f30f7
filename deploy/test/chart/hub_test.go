package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestHubPage: the values of the page about hubs render, eventsvc takes the files, and decides as the table of the page says.
func TestHubPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/deploy/docs/how-to/hub.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range find[*corev1.ConfigMap](t, objects(t, values), "eventsvc-access").Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rows := regexp.MustCompile(`(?m)^\| the (mirror|aggregate) of (\w+) \| (\w+) \| (\w+) \| (yes|no) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 6 {
		t.Fatalf("%d decisions", len(rows))
	}
	for _, row := range rows {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), "can-i", row[3], "-A", "--cluster", row[4],
			"--policy-file", filepath.Join(dir, "policy.yaml"), "--issuers-file", filepath.Join(dir, "issuers.yaml"), "--issuer=",
			"--token-issuer", "https://"+row[2]+".example", "--client-id", "system:serviceaccount:tidings:eventsvc-"+row[1])
		cmd.Env = []string{}
		out, err := cmd.CombinedOutput()
		if !strings.HasPrefix(string(out), row[5]+": ") || (err == nil) != (row[5] == "yes") {
			t.Errorf("%s: %v\n%s", row[0], err, out)
		}
	}
}
