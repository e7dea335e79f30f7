package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/cli"
)

func configFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "demosvc.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigFile(t *testing.T) {
	file := configFile(t, `# settings of the demonstration
listen-http: 127.0.0.1:1
lifetime: 60s
names: [x, "y,z"]
strict: false
wait: 3s # a setting of another command
`)
	t.Setenv("DEMOSVC_CONFIG_FILE", file)
	set, _, _, stderr, err := parse(t)
	want := serve{ListenHTTP: "127.0.0.1:1", Lifetime: time.Minute, LogFormat: "auto", Names: []string{"x", "y,z"}}
	if diff := cmp.Diff(want, set.Serve); diff != "" || err != nil {
		t.Fatalf("file over default: %v, %s\n%s", err, stderr, diff)
	}
	t.Setenv("DEMOSVC_LISTEN_HTTP", "127.0.0.1:2")
	t.Setenv("DEMOSVC_NAMES", "n")
	set, _, _, _, err = parse(t, "--lifetime=2s", "--strict")
	want = serve{ListenHTTP: "127.0.0.1:2", Lifetime: 2 * time.Second, LogFormat: "auto", Names: []string{"n"}, Strict: true}
	if diff := cmp.Diff(want, set.Serve); diff != "" || err != nil {
		t.Errorf("flag and environment over file: %v\n%s", err, diff)
	}
	if set, _, _, _, err = parse(t, "healthcheck"); err != nil || set.Healthcheck.Wait != 3*time.Second {
		t.Errorf("another command: %+v, %v", set.Healthcheck, err)
	}
	if set, _, _, _, err = parse(t, "--config-file="+configFile(t, "# nothing yet\n")); err != nil || set.Serve.Lifetime != 300*time.Second {
		t.Errorf("flag over environment for the file itself, an empty file: %+v, %v", set.Serve, err)
	}
}

func TestConfigFileMistakes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ content, want string }{
		"misspelt key":       {"\nlisten-htp: a\n", `demosvc.yaml:2: unknown setting "listen-htp", did you mean listen-http?`},
		"key of nothing":     {"colour-of-the-sky: blue", `unknown setting "colour-of-the-sky": take it out`},
		"key twice":          {"lifetime: 1s\nlifetime: 2s", "line 2: lifetime was set in line 1 already"},
		"itself":             {"config-file: other.yaml", `unknown setting "config-file"`},
		"no map":             {"- lifetime", "not a map"},
		"no YAML":            {"a: [", "demosvc.yaml: yaml"},
		"value of a kind":    {"lifetime: soon", "demosvc.yaml:1: "},
		"no value":           {"lifetime:", "not a value"},
		"map as value":       {"names: {a: b}", "not a value"},
		"list for one value": {"lifetime: [1s]", "not a value"},
		"outside the choice": {"log-format: xml", "log-format"},
	} {
		_, _, _, stderr, err := parse(t, "--config-file="+configFile(t, test.content))
		if cli.ExitCode(err) != 2 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, %s\nwant %s", name, cli.ExitCode(err), stderr, test.want)
		}
	}
	if _, _, _, stderr, err := parse(t, "--config-file=/nowhere.yaml"); cli.ExitCode(err) != 2 || !strings.Contains(stderr, "--config-file") {
		t.Errorf("no such file: %v %s", err, stderr)
	}
}

// printConfig prints the settings that the arguments give.
func printConfig(t *testing.T, args ...string) (*settings, string) {
	t.Helper()
	var set settings
	var out, stderr bytes.Buffer
	kctx, err := cli.Parse("demosvc", "DEMOSVC", "A demonstration.", &set, append([]string{"config", "print"}, args...), &out, &stderr)
	if err == nil {
		err = kctx.Run()
	}
	if err != nil {
		t.Fatalf("%v %s", err, stderr.String())
	}
	return &set, out.String()
}

// TestPrintConfig: each value comes with its origin, and what is printed is a config file of the same settings.
func TestPrintConfig(t *testing.T) {
	t.Setenv("DEMOSVC_NAMES", "on,1,off")
	t.Setenv("DEMOSVC_PASSWORD", "hunter2")
	before, printed := printConfig(t, "--config-file", configFile(t, "lifetime: 1m"), "--no-strict")
	for setting, want := range map[string]string{
		"listen-http: 127.0.0.1:9000": "default", "lifetime: 1m0s": "file", "strict: false": "flag",
		"password: (hidden)": "env DEMOSVC_PASSWORD", "names:": "env DEMOSVC_NAMES", "# config-file:": "flag",
	} {
		found := false
		for line := range strings.Lines(printed) {
			found = found || strings.HasPrefix(line, setting) && strings.HasSuffix(line, "# "+want+"\n")
		}
		if !found {
			t.Errorf("no %q from %q in\n%s", setting, want, printed)
		}
	}
	if strings.Contains(printed, "hunter2") {
		t.Errorf("a secret is shown:\n%s", printed)
	}
	if err := os.Unsetenv("DEMOSVC_NAMES"); err != nil { // t.Setenv restores it
		t.Fatal(err)
	}
	after, _ := printConfig(t, "--config-file", configFile(t, printed))
	if diff := cmp.Diff(before.Config.Print.Settings, after.Config.Print.Settings); diff != "" {
		t.Errorf("what is printed means something else (-before +after):\n%s\n%s", diff, printed)
	}
}

func TestListConfig(t *testing.T) {
	t.Parallel()
	var set settings
	var out bytes.Buffer
	kctx, err := cli.Parse("demosvc", "DEMOSVC", "A demonstration.", &set, []string{"config", "list"}, &out, &out)
	if err == nil {
		err = kctx.Run()
	}
	want := "| `--lifetime` | `DEMOSVC_LIFETIME` | `300s` | How long tokens live. |\n"
	if err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v, no %s in\n%s", err, want, out.String())
	}
}
