package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"tidings.example/eventsvc/internal/rules"
	"tidings.example/shared/cli"
)

// usageC says who takes the room of the store.
type usageC struct {
	storeSettings
	MaxBytes  cli.Size `placeholder:"SIZE" help:"Project the age for this limit. Default: the limit of the running service, or none."`
	RulesFile string   `env:"-" placeholder:"FILE" help:"Say what each rule of this file would save."`
	Top       int      `env:"-" default:"10" help:"Namespaces and reporters that are shown in text; 0: all."`
	Output    string   `env:"-" short:"o" default:"text" enum:"text,json" help:"text or json."`
}

// Help is the rest of the command's help.
func (*usageC) Help() string {
	return `Examples:

    eventsvc usage
    eventsvc usage --max-bytes 20GiB
    eventsvc usage --rules-file rules.yaml
    eventsvc usage -o json | jq '.reporters[0]'

Shows how many events there are, how many bytes they take, and how many were written a second within the past hour: by
namespace, by type and by reporter, the busiest first. It also says how old the oldest event is, and how old events can get
before --max-bytes removes them: at the mean rate so far, and at the rate of the past hour. With --rules-file it says what each
rule would save: the events that it would drop, or remove earlier. It reads all events.` + exitCodes
}

// Run prints the figures.
func (u *usageC) Run(ctx context.Context, std stdio) error {
	var rulesFile []byte
	if u.RulesFile != "" {
		text, err := os.ReadFile(u.RulesFile)
		if err != nil {
			return cli.Usagef("--rules-file: %w", err)
		}
		if _, err := rules.Parse(text); err != nil {
			return cli.Usagef("--rules-file %s: %w", u.RulesFile, err)
		}
		rulesFile = text
	}
	s, closeStore, err := u.open(false, nil)
	if err != nil {
		return err
	}
	b, err := s.Usage(ctx, int64(u.MaxBytes), rulesFile)
	if err := errors.Join(err, closeStore()); err != nil {
		return err
	}
	if u.Output == "json" {
		return json.NewEncoder(std.out).Encode(b)
	}
	return b.Print(std.out, u.Top)
}
