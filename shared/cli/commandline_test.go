package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/shared/cli"
)

type serve struct {
	ListenHTTP string        `name:"listen-http" default:"127.0.0.1:9000" placeholder:"HOST:PORT" help:"Where to listen."`
	Lifetime   time.Duration `default:"300s" help:"How long tokens live."`
	LogFormat  string        `enum:"auto,text,json" default:"auto" help:"Format of the log."`
	Names      []string      `default:"a,b" help:"Some names."`
	Strict     bool          `default:"true" negatable:"" help:"Be strict."`
	Password   string        `secret:"" help:"What nobody may see."`
}

type settings struct {
	Serve       serve                     `cmd:"" default:"withargs" help:"Serve (the default command)."`
	Config      cli.Config[serve, *serve] `cmd:"" help:"Show the settings."`
	Healthcheck struct {
		Wait  time.Duration `help:"Wait so long."`
		Times int           `help:"Ask so often."`
		Place string        `short:"p" placeholder:"HOST" help:"Ask there."`
	} `cmd:"" help:"Ask the readiness probe."`
	Show struct {
		File string `arg:"" help:"What to show."`
	} `cmd:"" help:"Show a file."`
	Group struct {
		One struct{} `cmd:"" help:"The one."`
		Two struct{} `cmd:"" help:"The other."`
	} `cmd:"" help:"Two more."`
}

// Check finds nothing wrong.
func (*serve) Check() error { return nil }

func parse(t *testing.T, args ...string) (*settings, string, string, string, error) {
	t.Helper()
	var set settings
	var stdout, stderr bytes.Buffer
	kctx, err := cli.Parse("demosvc", "DEMOSVC", "A demonstration.", &set, args, &stdout, &stderr)
	command := ""
	if kctx != nil {
		command = kctx.Command()
	}
	return &set, command, stdout.String(), stderr.String(), err
}

func TestParseOrder(t *testing.T) {
	set, command, _, _, err := parse(t)
	if err != nil || command != "serve" || set.Serve.ListenHTTP != "127.0.0.1:9000" || set.Serve.Lifetime != 300*time.Second {
		t.Fatalf("defaults: command %q, %+v, %v", command, set, err)
	}
	t.Setenv("DEMOSVC_LISTEN_HTTP", "127.0.0.1:1")
	if set, _, _, _, err = parse(t); err != nil || set.Serve.ListenHTTP != "127.0.0.1:1" {
		t.Errorf("environment over default: %+v, %v", set, err)
	}
	if set, _, _, _, err = parse(t, "--listen-http", "127.0.0.1:2"); err != nil || set.Serve.ListenHTTP != "127.0.0.1:2" {
		t.Errorf("flag over environment, default command: %+v, %v", set, err)
	}
	if set, command, _, _, err = parse(t, "healthcheck", "--wait=3s"); err != nil || command != "healthcheck" || set.Healthcheck.Wait != 3*time.Second {
		t.Errorf("another command: %q, %+v, %v", command, set, err)
	}
}

func TestParseHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"serve", "-h"}, {"healthcheck", "-h"}} {
		_, _, stdout, stderr, err := parse(t, args...)
		if !errors.Is(err, cli.ErrHelp) || cli.ExitCode(err) != 0 || stderr != "" {
			t.Errorf("%q: error %v, stderr %q", args, err, stderr)
		}
		want := []string{"Usage: demosvc"}
		if args[0] == "serve" {
			want = append(want, "DEMOSVC_LISTEN_HTTP", "HOST:PORT", "default 127.0.0.1:9000", "DEMOSVC_LIFETIME")
		}
		for _, text := range want {
			if !strings.Contains(stdout, text) {
				t.Errorf("%q: help has no %q:\n%s", args, text, stdout)
			}
		}
	}
}

// TestHelpGroups: the help of a command whose flags are in groups is a page of names, and one for each group.
func TestHelpGroups(t *testing.T) {
	var set struct {
		Serve struct {
			Listen string   `group:"listeners" default:"127.0.0.1:9000" help:"Listen here."`
			Names  []string `group:"listeners" placeholder:"NAME" help:"Names of it."`
			Most   int      `group:"limits" default:"3" help:"So many; 0: no limit."`
		} `cmd:"" default:"withargs" help:"Serve."`
		Show struct{} `cmd:"" help:"Show."`
	}
	for args, test := range map[string]struct{ has, hasNot []string }{
		"serve -h":               {[]string{"  listeners   --listen --names", "  limits      --most", "--config-file"}, []string{"Listen here", "Many"}},
		"serve --help listeners": {[]string{"Listen here", "--names=NAME,..."}, []string{"--most", "--config-file"}},
		"serve --help limits":    {[]string{"So many; 0: no limit"}, []string{"Listen here"}},
		"serve -h all":           {[]string{"Listen here", "So many", "--config-file"}, nil},
		"-h serve":               {[]string{"  listeners   --listen"}, nil},
		"show -h":                {[]string{"--config-file"}, []string{"in groups"}},
	} {
		var out bytes.Buffer
		if _, err := cli.Parse("demosvc", "DEMOSVC", "", &set, strings.Fields(args), &out, &out); !errors.Is(err, cli.ErrHelp) {
			t.Errorf("%s: %v\n%s", args, err, out.String())
		}
		for _, text := range test.has {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: no %q in\n%s", args, text, out.String())
			}
		}
		for _, text := range test.hasNot {
			if strings.Contains(out.String(), text) {
				t.Errorf("%s: %q in\n%s", args, text, out.String())
			}
		}
	}
	for args, want := range map[string]string{
		"serve -h limit": `there is no group "limit" of settings: choose one of listeners, limits, or all`,
		"show -h limits": `there is no help about "limits"`,
	} {
		var out bytes.Buffer
		if _, err := cli.Parse("demosvc", "DEMOSVC", "", &set, strings.Fields(args), &out, &out); cli.ExitCode(err) != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", args, err, out.String())
		}
	}
}

func TestParseMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		env  [2]string
		want string
	}{
		"unknown flag":                 {args: []string{"--listen-htp=:1"}, want: "listen-http"},
		"unknown flag of a command":    {args: []string{"healthcheck", "--wiat=1s"}, want: `Run "demosvc healthcheck --help"`},
		"unknown command":              {args: []string{"sevre"}, want: `unknown command "sevre", did you mean serve?`},
		"command of elsewhere":         {args: []string{"frobnicate"}, want: `unknown command "frobnicate": there are serve, config, healthcheck, show, group`},
		"argument too many":            {args: []string{"healthcheck", "now"}, want: "unexpected argument now"},
		"argument missing":             {args: []string{"show"}, want: "<file>"},
		"command missing":              {args: []string{"group"}, want: `expected one of "one", "two"`},
		"flag without a value":         {args: []string{"--listen-http"}, want: "--listen-http"},
		"flag before another":          {args: []string{"--listen-http", "--strict"}, want: "--listen-http"},
		"short flag without a value":   {args: []string{"healthcheck", "-p"}, want: "--place"},
		"list without a value":         {args: []string{"--names"}, want: "--names"},
		"value that is no duration":    {args: []string{"--lifetime=soon"}, want: `--lifetime: "soon" is no duration: write numbers with units, such as 90s`},
		"duration in months":           {args: []string{"--lifetime=7M"}, want: `--lifetime: "7M" is no duration: write numbers with units, such as 90s, 1h30m, 30d or 2w`},
		"value that is no number":      {args: []string{"healthcheck", "--times=x"}, want: `--times: expected a valid 64 bit int but got "x"`},
		"value outside the choice":     {args: []string{"--log-format=xml"}, want: "log-format"},
		"variable outside the choice":  {env: [2]string{"DEMOSVC_LOG_FORMAT", "xml"}, want: "log-format"},
		"variable that is no duration": {env: [2]string{"DEMOSVC_LIFETIME", "soon"}, want: "DEMOSVC_LIFETIME"},
		"misspelt variable":            {env: [2]string{"DEMOSVC_LISTEN_HTP", ":1"}, want: "did you mean DEMOSVC_LISTEN_HTTP?"},
		"short variable of nothing":    {env: [2]string{"DEMOSVC_FOO", "x"}, want: "unknown environment variable DEMOSVC_FOO: unset it"},
		"variable of nothing":          {env: [2]string{"DEMOSVC_COLOUR_OF_THE_SKY", "blue"}, want: "unknown environment variable DEMOSVC_COLOUR_OF_THE_SKY"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.env[0] != "" {
				t.Setenv(test.env[0], test.env[1])
			}
			_, _, stdout, stderr, err := parse(t, test.args...)
			if cli.ExitCode(err) != 2 || stdout != "" {
				t.Errorf("exit code %d of %v, stdout %q", cli.ExitCode(err), err, stdout)
			}
			if !strings.Contains(stderr, test.want) || !strings.Contains(stderr, "--help") {
				t.Errorf("stderr does not tell %q and how to get help:\n%s", test.want, stderr)
			}
		})
	}
}

func TestParseIgnoresServiceLinks(t *testing.T) {
	for _, name := range []string{"SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8080_TCP", "PORT_8080_TCP_ADDR"} {
		t.Setenv("DEMOSVC_"+name, "10.0.0.1")
	}
	if _, _, _, _, err := parse(t); err != nil {
		t.Errorf("variables that Kubernetes sets for a service of our name: %v", err)
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{0: nil, 1: errors.New("disk full"), 2: fmt.Errorf("start: %w", cli.Usagef("--a and --b"))} {
		if got := cli.ExitCode(err); got != want {
			t.Errorf("ExitCode(%v) = %d, want %d", err, got, want)
		}
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	write := func(content string) string {
		name := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, test := range map[string]struct{ value, file, want, err string }{
		"direct":         {value: "s", want: "s"},
		"neither":        {},
		"file":           {file: write(" from file\n"), want: "from file"},
		"both":           {value: "s", file: write("f"), err: "--dsn and --dsn-file are both set"},
		"empty file":     {file: write("\n"), err: "is empty"},
		"file not there": {file: filepath.Join(t.TempDir(), "none"), err: "--dsn-file"},
	} {
		got, err := cli.Secret("dsn", test.value, test.file)
		if got != test.want || (err != nil) != (test.err != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), test.err) || cli.ExitCode(err) != 2) {
			t.Errorf("%s: error %v, want %q and exit code 2", name, err, test.err)
		}
	}
}

// TestChanged: the attribute has each setting that differs from its default, wherever it comes from, and no secret.
func TestChanged(t *testing.T) {
	t.Setenv("DEMOSVC_NAMES", "a,c")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"one variable":        {nil, "[names=[a, c]]"},
		"the default written": {[]string{"--lifetime=5m", "--names=a,b", "--strict"}, "[]"},
		"flags":               {[]string{"--lifetime=30d", "--no-strict", "--listen-http="}, `[listen-http="" lifetime=720h0m0s names=[a, c] strict=false]`},
		"a secret":            {[]string{"--names=a,b", "--password=hunter2"}, "[password=(hidden)]"},
		"a secret in a URL":   {[]string{"--names=a,b", "--listen-http=http://me:hunter2@127.0.0.1"}, "[listen-http=http://me:xxxxx@127.0.0.1]"},
	} {
		var set settings
		kctx, err := cli.Parse("demosvc", "DEMOSVC", "A demonstration.", &set, test.args, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(name, err)
		}
		if got, err := cli.Changed(kctx); err != nil || got.Key != "settings" || got.Value.String() != test.want {
			t.Errorf("%s: %s, %v; want settings=%s", name, got, err, test.want)
		}
	}
}
