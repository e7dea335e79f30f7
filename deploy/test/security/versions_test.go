package security

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVersionsOfImages: the images have the versions of modules that the go.mod of each service names. They are built
// in one workspace, which takes the highest version that any of its modules asks for.
func TestVersionsOfImages(t *testing.T) {
	t.Parallel()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	made := regexp.MustCompile(`(?m)^RUN go work init ((?:\./\w+ )+)`).FindStringSubmatch(read(t, "deploy/Dockerfile"))
	if made == nil {
		t.Fatal("the Dockerfile makes no workspace")
	}
	work := filepath.Join(t.TempDir(), "go.work")
	text := "go " + strings.TrimSpace(output(t, filepath.Join(top, "eventsvc"), "go", "list", "-m", "-f", "{{.GoVersion}}")) + "\n"
	for _, module := range strings.Fields(made[1]) {
		text += "use " + filepath.Join(top, module) + "\n"
	}
	if err := os.WriteFile(work, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"tokensvc", "eventsvc"} {
		versions := func(workspace string) map[string]bool {
			listed := output(t, filepath.Join(top, service), "env", "GOWORK="+workspace, "go", "list", "-deps",
				"-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}", ".")
			all := map[string]bool{}
			for _, line := range strings.Fields(strings.ReplaceAll(listed, " ", "@")) {
				all[line] = true
			}
			return all
		}
		alone, image := versions("off"), versions(work)
		if len(alone) < 10 {
			t.Fatalf("%s is built of the modules %v", service, alone)
		}
		for module := range image {
			if !alone[module] {
				t.Errorf("the image of %s has %s, and its go.mod another version: run go get %[2]s in %[1]s", service, module)
			}
		}
	}
}
