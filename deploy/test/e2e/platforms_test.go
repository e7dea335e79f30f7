package e2e_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/deploy/test/internal/testenv"
)

// These tests try what pages say about systemd, containers and Kubernetes as far as it can be tried without them.

// named is the first line of a block that is a file: its name.
var named = regexp.MustCompile(`^# ((?:/etc|my)/\S+?)(?:,.*)?\n`)

// filesOf writes the blocks of a language that have a name below a directory, and returns their names.
func filesOf(t *testing.T, dir, language string, page ...string) (names []string) {
	t.Helper()
	for _, p := range page {
		for _, block := range blocks(t, p)[language] {
			name := named.FindStringSubmatch(block)
			if name == nil {
				continue
			}
			write(t, filepath.Join(dir, name[1]), block)
			names = append(names, name[1])
		}
	}
	return names
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// blockWith returns the only block of a page, in any language, that has a text.
func blockWith(t *testing.T, page, text string) string {
	t.Helper()
	var found []string
	for _, all := range blocks(t, filepath.Join(root, page)) {
		for _, block := range all {
			if strings.Contains(block, text) {
				found = append(found, block)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks with %q", page, len(found), text)
	}
	return found[0]
}

// TestUnitsOfPages: systemd understands the units of the pages and their parts, beside the units of deploy/systemd.
func TestUnitsOfPages(t *testing.T) {
	t.Parallel()
	analyze := testenv.Tool(t, "systemd-analyze")
	dir := t.TempDir()
	units := filepath.Join(dir, "etc/systemd/system")
	for _, page := range shellPages(t) {
		for _, block := range blocks(t, page)["ini"] {
			if named.FindString(block) == "" {
				t.Errorf("%s: a part of a unit does not begin with its place:\n%s", page, block)
			}
		}
	}
	names := filesOf(t, dir, "ini", shellPages(t)...)
	if len(names) < 8 {
		t.Errorf("%d units and parts of units: %s", len(names), names)
	}
	own, err := filepath.Glob(filepath.Join(root, "deploy/systemd/*.service"))
	if err != nil || len(own) != 4 {
		t.Fatalf("units %s: %v", own, err)
	}
	for _, unit := range own {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(units, filepath.Base(unit)), string(text))
	}
	second := strings.ReplaceAll(blockWith(t, "deploy/docs/how-to/install.md", "eventsvc-staging.service"), "/etc/systemd/system", units)
	if out, err := exec.CommandContext(t.Context(), "sh", "-eu", "-c", second).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	staging, err := os.ReadFile(filepath.Join(units, "eventsvc-staging.service"))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, string(staging), "EnvironmentFile=/etc/tidings/eventsvc-staging.env\n", "EVENTSVC_DATA_DIR=/var/lib/eventsvc-staging\n", "StateDirectory=eventsvc-staging\n")

	var all []string
	err = filepath.WalkDir(units, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		here := strings.NewReplacer("/usr/local/bin/eventsvc-nightly", "/bin/true", "/usr/local/bin/", bin+"/").Replace(string(text))
		if filepath.Dir(path) == units && !strings.Contains(path, "@") {
			all = append(all, path)
		}
		return os.WriteFile(path, []byte(here), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("eventsvc-mirror@.service", filepath.Join(units, "eventsvc-mirror@prod.service")); err != nil {
		t.Fatal(err)
	}
	all = append(all, filepath.Join(units, "eventsvc-mirror@prod.service"))
	out, err := exec.CommandContext(t.Context(), analyze, append([]string{"verify", "--man=no", "--recursive-errors=no"}, all...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify %s: %v\n%s", all, err, out)
	}
}

// TestLinuxMachinePage: both services start with the files that the page about the installation writes, and the client
// of the page may do what its policy says.
func TestLinuxMachinePage(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.shell(t, strings.Join(blocks(t, filepath.Join(root, "deploy/docs/how-to/install.md"))["sh"], ""))
	etc := filepath.Join(c.dir, "var/etc/tidings")
	var started []*process
	here := strings.NewReplacer("/etc/tidings", etc, "=:8443", "="+c.moved.Replace("127.0.0.1:8443"))
	for name, more := range map[string][]string{
		"tokensvc": {"TOKENSVC_LISTEN_HTTP=" + c.moved.Replace("127.0.0.1:9000"), "TOKENSVC_LISTEN_ADMIN=" + c.moved.Replace("127.0.0.1:9001")},
		"eventsvc": {"EVENTSVC_LISTEN_HTTP=" + c.moved.Replace("127.0.0.1:8080"), "EVENTSVC_LISTEN_ADMIN=" + c.moved.Replace("127.0.0.1:8081"), "EVENTSVC_DATA_DIR=" + t.TempDir()},
	} {
		file, err := os.ReadFile(filepath.Join(etc, name+".env"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(strings.NewReader(here.Replace(string(file))))
		for lines.Scan() {
			more = append(more, lines.Text())
		}
		for _, yaml := range []string{"clients.yaml", "policy.yaml"} {
			if text, err := os.ReadFile(filepath.Join(etc, yaml)); err != nil || len(text) == 0 {
				t.Fatalf("%s: %v", yaml, err)
			}
		}
		p := &process{name: name, env: more}
		p.launch(t)
		started = append(started, p)
	}
	for _, p := range started { // in any order, as at a boot; eventsvc is ready once it has the keys of tokensvc
		p.waitReady(t)
	}
	record := `bin/eventsvc record --server http://127.0.0.1:8080 --token-url http://127.0.0.1:9000/oauth2/token --client-id orders ` +
		`--client-secret-file var/orders-secret --regarding Job/nightly --reason Tried `
	expect(t, c.shell(t, record+"-n shop\n"+record+"-n other --timeout 1s || echo refused"), "shop/nightly.", "refused")
}

// TestComposeFilesOfPages: docker compose takes each docker-compose.override.yml of a page beside docker-compose.yml.
func TestComposeFilesOfPages(t *testing.T) {
	t.Parallel()
	docker := testenv.Tool(t, "docker")
	tried := 0
	for _, page := range shellPages(t) {
		for _, block := range blocks(t, page)["yaml"] {
			if !strings.HasPrefix(strings.TrimSpace(block), "services:") {
				continue
			}
			tried++
			override := filepath.Join(t.TempDir(), "docker-compose.override.yml")
			write(t, override, block)
			cmd := exec.CommandContext(t.Context(), docker, "compose", "--file", filepath.Join(root, "docker-compose.yml"), "--file", override, "config", "--quiet")
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s\n%s", page, err, block, out)
			}
		}
	}
	if tried < 2 {
		t.Errorf("%d files were tried", tried)
	}
}

// TestOverlaysOfPages: the overlays of the page about the installation render, and what they render fits Kubernetes.
func TestOverlaysOfPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "deploy/kubernetes"), os.DirFS(filepath.Join(root, "deploy/kubernetes"))); err != nil {
		t.Fatal(err)
	}
	names := filesOf(t, dir, "yaml", filepath.Join(root, "deploy/docs/how-to/install.md"))
	write(t, filepath.Join(dir, "my/eventsvc/policy.yaml"), "bindings: []\n")
	for _, name := range names {
		rendered := render(t, filepath.Join(dir, filepath.Dir(name)))
		checkWorkload(t, rendered)
		expect(t, rendered, "image: registry.example.com/", "value: https://tokens.my.example")
	}
	if len(names) != 2 {
		t.Errorf("overlays %s, want two", names)
	}
}

// TestPodsOfPages: the claim and the pods with which the pages about recovery and troubles reach the files of a service
// are what Kubernetes knows, and the lines with sed make the others of the first.
func TestPodsOfPages(t *testing.T) {
	t.Parallel()
	const recovery, troubles = "deploy/docs/how-to/recover.md", "deploy/docs/how-to/troubleshoot.md"
	claim, ok := strict(t, blockWith(t, recovery, "kind: PersistentVolumeClaim")).(*corev1.PersistentVolumeClaim)
	if !ok || claim.Name != "data-eventsvc-0" {
		t.Fatalf("the claim is %+v", claim)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "restore.json"), blockWith(t, recovery, `"name": "restore"`))
	sed := regexp.MustCompile(`(?m)^sed .* restore\.json > \w+\.json$`)
	for _, file := range []string{"drop.json", "files.json"} {
		line := sed.FindString(blockWith(t, troubles, "> "+file))
		if !strings.HasSuffix(line, file) {
			t.Fatalf("%s has no line with sed that makes %s of restore.json, but %q", troubles, file, line)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", line)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for file, want := range map[string]string{"restore.json": "restore -", "drop.json": "check --drop-damaged", "files.json": "sleep 3600"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		object := strict(t, strings.Replace(string(text), `{"apiVersion": "v1",`, `{"apiVersion": "v1", "kind": "Pod",`, 1)) // kubectl run knows the kind
		pod, ok := object.(*corev1.Pod)
		if !ok {
			t.Fatalf("%s is %s", file, object.GetObjectKind().GroupVersionKind())
		}
		first := pod.Spec.Containers[0]
		if got := strings.Join(append(first.Command, first.Args...), " "); got != want {
			t.Errorf("the pod of %s calls %q, want %q", file, got, want)
		}
		if pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != claim.Name {
			t.Errorf("the pod of %s has the volumes %+v", file, pod.Spec.Volumes)
		}
	}
	text := strings.Replace(blockWith(t, "deploy/docs/how-to/replicas.md", `"name": "mover"`), `{"apiVersion": "v1",`, `{"apiVersion": "v1", "kind": "Pod",`, 1)
	mover, ok := strict(t, text).(*corev1.Pod)
	if !ok || mover.Spec.Containers[0].Args[0] != "serve" || mover.Spec.Volumes[1].Secret.SecretName != "eventsvc-dsn" {
		t.Errorf("the pod that moves events is %+v", mover)
	}
}

// TestCommandsAreWhole: a shell can read each block of commands that no test runs. A block that is no command has the
// language text.
func TestCommandsAreWhole(t *testing.T) {
	t.Parallel()
	read := 0
	for _, page := range shellPages(t) {
		for _, block := range blocks(t, page)[""] {
			read++
			cmd := exec.CommandContext(t.Context(), "bash", "-n")
			cmd.Stdin = strings.NewReader(block)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s\n%s", page, err, block, out)
			}
		}
	}
	if read < 90 {
		t.Errorf("%d blocks were read", read)
	}
}
