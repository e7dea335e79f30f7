package service_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"tidings.example/shared/cli"
	"tidings.example/shared/service"
)

// TestVersion: the command and the flag print the same, whatever the config file is, and the flag is no setting.
func TestVersion(t *testing.T) {
	t.Parallel()
	want := "x " + service.Version() + "\n"
	for _, args := range []string{"version", "--version", "serve --version", "--version --config-file=/none", "config print --version"} {
		var out bytes.Buffer
		var set versioned
		app, err := cli.Parse("x", "VERSIONTEST", "", &set, strings.Fields(args), &out, io.Discard)
		if args == "version" {
			if err != nil {
				t.Fatal(err)
			}
			err = app.Run()
		} else if errors.Is(err, cli.ErrHelp) {
			err = nil
		}
		if err != nil || out.String() != want {
			t.Errorf("%s: %q, want %q: %v", args, out.String(), want, err)
		}
	}
	for _, args := range []string{"config print", "config list"} {
		var out bytes.Buffer
		var set versioned
		app, err := cli.Parse("x", "VERSIONTEST", "", &set, strings.Fields(args), &out, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := app.Run(); err != nil || !strings.Contains(out.String(), "number") || strings.Contains(out.String(), "version") {
			t.Errorf("%s: %v: %s", args, err, out.String())
		}
	}
}

type versioned struct {
	Serve  numbered                        `cmd:"" default:"withargs" help:"x"`
	Config cli.Config[numbered, *numbered] `cmd:"" help:"x"`
	service.VersionCommands
}

type numbered struct {
	Number int `default:"1" help:"x"`
}

func (*numbered) Check() error { return nil }
