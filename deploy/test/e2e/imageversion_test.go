package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// buildImage builds an image without a name, and returns its id.
func buildImage(t *testing.T, dir, service string, args ...string) string {
	t.Helper()
	args = append(append([]string{"build", "--quiet", "--file", "deploy/Dockerfile", "--target", service}, args...), ".")
	cmd := exec.CommandContext(t.Context(), "docker", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s%s", strings.Join(args, " "), err, out, stderrOf(err))
	}
	id := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", id).Run() })
	return id
}

// testImageVersion builds images in a clone, in an unpacked tarball, and with make. The program must say which commit
// it is built from, as far as that can be known.
func testImageVersion(t *testing.T) {
	dir := clone(t)
	head, err := exec.CommandContext(t.Context(), "git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(string(head))
	version := func(image string) string {
		out, err := exec.CommandContext(t.Context(), "docker", "run", "--rm", image, "version").Output()
		if err != nil {
			t.Fatalf("%v %s", err, stderrOf(err))
		}
		return string(out)
	}
	for _, service := range []string{"tokensvc", "eventsvc"} {
		expect(t, version(buildImage(t, dir, service)), service+" ", " "+commit+" ")
	}
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	expect(t, version(buildImage(t, dir, "tokensvc")), "tokensvc (devel) go")
	named := buildImage(t, dir, "tokensvc", "--build-arg", "REVISION=v9.8.7")
	expect(t, version(named), "tokensvc (devel) v9.8.7 go")
	label, err := exec.CommandContext(t.Context(), "docker", "inspect", "--format", `{{index .Config.Labels "org.opencontainers.image.revision"}}`, named).Output()
	if err != nil || strings.TrimSpace(string(label)) != "v9.8.7" {
		t.Errorf("label %s, %v", label, err)
	}
}
