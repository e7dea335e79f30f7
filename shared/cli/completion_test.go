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

// knowing is a command that knows values.
type knowing struct {
	Server string   `placeholder:"URL" help:"x"`
	Name   string   `short:"n" env:"-" help:"x"`
	Kind   string   `enum:"a,b," default:"" help:"x"`
	Terms  []string `arg:"" optional:"" help:"x"`
}

func (k *knowing) Complete(setting, last string) []string {
	return []string{setting + "of" + k.Server, last + "+"}
}

// TestCompleter: a command adds what it knows, with the settings of the words before.
func TestCompleter(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"ask --server=s ":                "+ ofs",
		"ask --server s x":               "x+",
		"ask --server=s a b o":           "o+ ofs",
		"ask --server=s --name=":         "--name=+ --name=nameofs",
		"ask --server=s --name=n":        "--name=n+ --name=nameofs",
		"ask --server=s -n ":             "+ nameofs",
		"ask --no-such-flag --server=s ": "+ of",
		"ask --kind=c --server=s ":       "+ ofs",
		"ask --help ":                    "+ of",
		"ask --kind ":                    "+ a b kindof",
	} {
		var set struct {
			Ask knowing `cmd:"" help:"x"`
		}
		var out bytes.Buffer
		_, err := cli.Parse("x", "COMPLETER", "", &set, append([]string{"__complete"}, strings.Split(line, " ")...), &out, io.Discard)
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
