package usage

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/printable"
)

// Print writes the figures for people, of so many namespaces and reporters, of all if that is 0.
func (b *Breakdown) Print(out io.Writer, top int) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%d events of %s and old versions of %s in files of %s, %.2f events/s\n",
		b.Events, terminal.MiB(b.LiveBytes), terminal.MiB(b.HistoryBytes), terminal.MiB(b.FileBytes), b.PerSecond)
	if b.Events > 0 {
		fmt.Fprintf(w, "the oldest event is %s old\n", days(time.Duration(b.OldestAge*float64(time.Second))))
	}
	switch age := time.Duration(b.Projected * float64(time.Second)); {
	case b.Stats.MaxBytes == 0:
		fmt.Fprintln(w, "no limit of bytes is known, so no age is projected: give --max-bytes")
	case age == 0:
		fmt.Fprintf(w, "at the limit of %s: the projected age is not known yet\n", terminal.MiB(b.Stats.MaxBytes))
	default:
		uncompressed := ""
		if b.Stats.Compressed == 0 {
			uncompressed = ", if nothing is going to be compressed"
		}
		atRate := ""
		if b.PerSecond > 0 {
			atRate = "; at the rate of the past hour, of " + days(b.FitsFor())
		}
		fmt.Fprintf(w, "at the limit of %s: about %d events fit, of %s%s%s\n", terminal.MiB(b.Stats.MaxBytes), b.Stats.Fits(), days(age), atRate, uncompressed)
	}
	for _, table := range []struct {
		name  string
		parts []Part
	}{{"REPORTER", b.Reporters}, {"NAMESPACE", b.Namespaces}, {"TYPE", b.Types}} {
		fmt.Fprintf(w, "\n%s\tEVENTS\tBYTES\tEVENTS/S\n", table.name)
		for n, p := range table.parts {
			if top > 0 && n == top {
				fmt.Fprintf(w, "and %d more\n", len(table.parts)-n)
				break
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%.2f\n", printable.OneLine(p.Name), p.Events, terminal.MiB(p.Bytes), p.PerSecond)
		}
	}
	if len(b.Rules) > 0 {
		fmt.Fprint(w, "\nRULE\tDOES\tEVENTS\tBYTES\tWOULD SAVE\n")
	}
	for _, r := range b.Rules {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d events, %s\n", r.Name, r.Does, r.Events, terminal.MiB(r.Bytes), r.SavedEvents, terminal.MiB(r.SavedBytes))
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
