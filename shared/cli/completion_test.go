package cli_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"tidings.example/shared/cli"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	type leaf struct {
		Output  string `short:"o" default:"table" enum:"table,json,ndjson" help:"x"`
		File    string `short:"f" placeholder:"FILE" help:"x"`
		Name    string `env:"-" help:"x"`
		Quiet   bool   `help:"x"`
		Follow  bool   `default:"true" negatable:"" help:"x"`
		Secret  string `hidden:"" help:"x"`
		Timeout int    `help:"x"`
	}
	type table struct {
		Serve struct {
			Listen string `help:"x"`
		} `cmd:"" default:"withargs" help:"x"`
		Get  leaf `cmd:"" help:"x"`
		Keys struct {
			Rotate struct {
				File string `arg:"" help:"x"`
			} `cmd:"" help:"x"`
			Inspect struct{} `cmd:"" help:"x"`
		} `cmd:"" help:"x"`
		Hidden     struct{}       `cmd:"" hidden:"" help:"x"`
		Completion cli.Completion `cmd:"" help:"x"`
	}
	for line, want := range map[string]string{
		"":                      "completion get keys serve",
		"g":                     "get",
		"x":                     "",
		"--l":                   "--listen=",
		"keys ":                 "inspect rotate",
		"keys rotate ":          ":file",
		"keys inspect x":        "",
		"get --":                "--config-file= --file= --help --name= --no-follow --output= --quiet --timeout=",
		"get --output=":         "--output=json --output=ndjson --output=table",
		"get --output=n":        "--output=ndjson",
		"get --output ":         "json ndjson table",
		"get --output=json --q": "--quiet",
		"get -o ":               "json ndjson table",
		"get -o j":              "json",
		"get -o json -":         "--config-file= --file= --help --name= --no-follow --output= --quiet --timeout=",
		"get --file=/e":         ":file",
		"get -f ":               ":file",
		"get --name keys --ti":  "--timeout=",
		"get --quiet=":          "--quiet=false --quiet=true",
		"get --nothing=":        "",
		"completion ":           "bash fish zsh",
		"completion bash ":      "",
	} {
		var out bytes.Buffer
		var c table
		_, err := cli.Parse("x", "COMPLETION", "", &c, append([]string{"__complete"}, strings.Split(line, " ")...), &out, io.Discard)
		if got := strings.Join(strings.Fields(out.String()), " "); got != want || !errors.Is(err, cli.ErrHelp) {
			t.Errorf("%q: %q, want %q (%v)", line, got, want, err)
		}
	}
}

// TestCompletionHelp: the commands in the help have the program's name.
func TestCompletionHelp(t *testing.T) {
	t.Parallel()
	var set struct {
		Completion cli.Completion `cmd:"" help:"x"`
	}
	var out bytes.Buffer
	_, err := cli.Parse("tidy", "TIDY", "", &set, []string{"completion", "-h"}, &out, io.Discard)
	if !errors.Is(err, cli.ErrHelp) || !strings.Contains(out.String(), "source <(tidy completion bash)") {
		t.Errorf("%v\n%s", err, &out)
	}
}
