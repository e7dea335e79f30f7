package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
)

// usageC says who takes the room of the store.
type usageC struct {
	storeSettings
	MaxBytes  size   `placeholder:"SIZE" help:"Project the age for this limit. Default: the limit of the running service, or none."`
	RulesFile string `env:"-" placeholder:"FILE" help:"Say what each rule of this file would save."`
	Top       int    `env:"-" default:"10" help:"Namespaces and reporters that are shown in text; 0: all."`
	Output    string `env:"-" short:"o" default:"text" enum:"text,json" help:"text or json."`
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
	return u.print(std.out, b)
}

func (u *usageC) print(out io.Writer, b *usage.Breakdown) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%d events of %s and old versions of %s in files of %s, %.2f events/s\n",
		b.Events, mebibytes(b.LiveBytes), mebibytes(b.HistoryBytes), mebibytes(b.FileBytes), b.PerSecond)
	if b.Events > 0 {
		fmt.Fprintf(w, "the oldest event is %s old\n", days(time.Duration(b.OldestAge*float64(time.Second))))
	}
	switch age := time.Duration(b.Projected * float64(time.Second)); {
	case b.Stats.MaxBytes == 0:
		fmt.Fprintln(w, "no limit of bytes is known, so no age is projected: give --max-bytes")
	case age == 0:
		fmt.Fprintf(w, "at the limit of %s: the projected age is not known yet\n", mebibytes(b.Stats.MaxBytes))
	default:
		uncompressed := ""
		if b.Stats.Compressed == 0 {
			uncompressed = ", if nothing is going to be compressed"
		}
		atRate := ""
		if b.PerSecond > 0 {
			atRate = "; at the rate of the past hour, of " + days(b.FitsFor())
		}
		fmt.Fprintf(w, "at the limit of %s: about %d events fit, of %s%s%s\n", mebibytes(b.Stats.MaxBytes), b.Stats.Fits(), days(age), atRate, uncompressed)
	}
	for _, table := range []struct {
		name  string
		parts []usage.Part
	}{{"REPORTER", b.Reporters}, {"NAMESPACE", b.Namespaces}, {"TYPE", b.Types}} {
		fmt.Fprintf(w, "\n%s\tEVENTS\tBYTES\tEVENTS/S\n", table.name)
		for n, p := range table.parts {
			if u.Top > 0 && n == u.Top {
				fmt.Fprintf(w, "and %d more\n", len(table.parts)-n)
				break
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%.2f\n", printable.OneLine(p.Name), p.Events, mebibytes(p.Bytes), p.PerSecond)
		}
	}
	if len(b.Rules) > 0 {
		fmt.Fprint(w, "\nRULE\tDOES\tEVENTS\tBYTES\tWOULD SAVE\n")
	}
	for _, r := range b.Rules {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d events, %s\n", r.Name, r.Does, r.Events, mebibytes(r.Bytes), r.SavedEvents, mebibytes(r.SavedBytes))
	}
	return w.Flush()
}

// days is an age for people: of several days, the hours say nothing.
func days(age time.Duration) string {
	if age < 48*time.Hour {
		return age.Round(time.Minute).String()
	}
	return fmt.Sprintf("%.1f days", age.Hours()/24)
}
