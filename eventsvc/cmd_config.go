package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
)

// configCommands has the commands that show the settings.
type configCommands struct {
	Print configPrint           `cmd:"" help:"Print the settings that serve would start with, and where each comes from; takes the flags of serve."`
	List  cli.ConfigList[serve] `cmd:"" help:"Print a table of all settings of serve in Markdown."`
}

// configPrint prints the settings.
type configPrint struct {
	Running  bool  `env:"-" help:"Print what the running service was started with; it is asked at --listen-admin, and --data-dir must be its own."`
	Settings serve `embed:""`
}

// Run prints the settings, and those without effect on standard error. It returns an error if serve would refuse them.
func (c *configPrint) Run(ctx context.Context, parsed *cli.Context, std stdio) error {
	if c.Running {
		remote, err := admin.NewRemote(c.Settings.DataDir, c.Settings.ListenAdmin)
		if err != nil {
			return err
		}
		return remote.Config(ctx, std.out)
	}
	text, err := cli.Settings(parsed)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(std.out, text); err != nil {
		return err
	}
	if err := c.Settings.Check(); err != nil {
		return err
	}
	s := &c.Settings
	rights, err := (&canI{PolicyFile: s.PolicyFile, Issuer: s.Issuer, IssuersFile: s.IssuersFile, Claims: s.Claims}).policy()
	if err != nil {
		return err
	}
	live, err := s.rules(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), nil)
	if err != nil {
		return err
	}
	std.warn(live.Current().Unreachable())
	std.warn(rights.Unreachable())
	return nil
}

// warn prints warnings.
func (s stdio) warn(texts []string) {
	for _, text := range texts {
		_, _ = fmt.Fprintln(s.err, "eventsvc: warning:", printable.Lines(text))
	}
}
