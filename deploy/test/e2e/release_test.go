package e2e_test

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/deploy/test/internal/testenv"
)

// clone is the committed state in a folder of its own.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tidings")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--no-hardlinks", root, dir).CombinedOutput(); err != nil {
		testenv.Unable(t, "this is no git repository: %v %s", err, out)
	}
	return dir
}

func makeIn(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %v: %v\n%s", args, err, out)
	}
}

// TestRelease builds what is released in two places: the bytes are the same, static, stripped of the builder's paths,
// and say what they were made from.
func TestRelease(t *testing.T) {
	t.Parallel()
	here, there := clone(t), clone(t)
	makeIn(t, here, nil, "release")
	sums := func(dir string) string {
		out, err := os.ReadFile(filepath.Join(dir, "bin/release/SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if os.Getenv("CI") == "true" { // with nothing shared, which takes minutes
		makeIn(t, there, []string{"GOCACHE=" + t.TempDir()}, "release", "ARCHS=amd64")
		for sum := range strings.Lines(sums(there)) {
			if !strings.Contains(sums(here), sum) {
				t.Errorf("%s is not among\n%s", sum, sums(here))
			}
		}
	}
	makeIn(t, there, nil, "release")
	if diff := cmp.Diff(sums(here), sums(there)); diff != "" || strings.Count(sums(here), "\n") != 8 {
		t.Errorf("two builds differ, or not four binaries with an SBOM each:\n%s%s", sums(here), diff)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = filepath.Join(here, "bin/release")
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	head, err := exec.CommandContext(t.Context(), "git", "-C", here, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, machine := range map[string]elf.Machine{
		"tokensvc-linux-amd64": elf.EM_X86_64, "tokensvc-linux-arm64": elf.EM_AARCH64,
		"eventsvc-linux-amd64": elf.EM_X86_64, "eventsvc-linux-arm64": elf.EM_AARCH64,
	} {
		path := filepath.Join(here, "bin/release", name)
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := file.ImportedLibraries()
		if file.Machine != machine || file.Section(".interp") != nil || err == nil && len(libraries) > 0 {
			t.Errorf("%s is for %s, needs %v", name, file.Machine, libraries)
		}
		file.Close()
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if settings["vcs.revision"] != strings.TrimSpace(string(head)) || settings["-trimpath"] != "true" || settings["vcs.modified"] != "false" {
			t.Errorf("%s says it is made from %v", name, settings)
		}
		checkSBOM(t, path, info)
	}
}

// checkSBOM compares the bill of materials of a binary with the modules that the binary names.
func checkSBOM(t *testing.T, path string, info *buildinfo.BuildInfo) {
	t.Helper()
	text, err := os.ReadFile(path + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat, SpecVersion string
		Components             []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &bill); err != nil || bill.BOMFormat != "CycloneDX" || bill.SpecVersion != "1.6" {
		t.Fatalf("%s.cdx.json: %v, %s %s", path, err, bill.BOMFormat, bill.SpecVersion)
	}
	want, got := []string{"std " + strings.TrimPrefix(info.GoVersion, "go") + " pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}, []string{}
	for _, m := range info.Deps {
		if m.Replace != nil { // by a directory of this repository
			want = append(want, m.Path+"  ")
			continue
		}
		want = append(want, m.Path+" "+m.Version+" pkg:golang/"+m.Path+"@"+m.Version)
	}
	for _, c := range bill.Components {
		got = append(got, c.Name+" "+c.Version+" "+c.PURL)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 10 {
		t.Errorf("%s.cdx.json lists %d components (-want +got):\n%s", path, len(got), diff)
	}
}

// TestReleaseOfTarball builds without git history; the version is the one that the builder gives.
func TestReleaseOfTarball(t *testing.T) {
	t.Parallel()
	dir := clone(t)
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[string]string{"": " (devel) go", "v9.8.7": " (devel) v9.8.7 go"} {
		makeIn(t, dir, nil, "release", "ARCHS="+runtime.GOARCH, "REVISION="+revision)
		for _, name := range []string{"tokensvc", "eventsvc"} {
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "bin/release", name+"-linux-"+runtime.GOARCH), "version").CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), name+want) {
				t.Errorf("%s version: %s, %v; want %s", name, out, err, name+want)
			}
		}
	}
}

// TestInstall installs both services below DESTDIR, as a package would.
func TestInstall(t *testing.T) {
	t.Parallel()
	to := t.TempDir()
	makeIn(t, clone(t), nil, "install", "DESTDIR="+to)
	for _, name := range []string{"tokensvc", "eventsvc"} {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(to, "usr/local/bin", name), "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), name+" ") {
			t.Errorf("%s version: %v %s", name, err, out)
		}
		unit := filepath.Join(to, "etc/systemd/system", name+".service")
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, string(text), "ExecStart=/usr/local/bin/"+name+" serve", "DynamicUser=yes", "ProtectSystem=strict")
	}
}
