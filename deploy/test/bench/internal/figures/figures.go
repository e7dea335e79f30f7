// Package figures writes measured figures, and tables of them. A figure of zero was not measured
// and is left out.
package figures

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// Table is a Markdown table with aligned columns, but for the last one.
func Table(header []string, rows [][]string) string {
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	for _, cells := range append([][]string{header}, rows...) {
		fmt.Fprintf(aligned, "| %s |\n", strings.Join(cells, "\t| "))
	}
	_ = aligned.Flush() // a strings.Builder takes everything
	head, body, _ := strings.Cut(text.String(), "\n")
	columns := strings.Split(strings.Trim(head, "|"), "|")
	for i, c := range columns {
		columns[i] = " " + strings.Repeat("-", utf8.RuneCountInString(c)-2) + " "
	}
	columns[len(columns)-1] = " --- "
	return head + "\n|" + strings.Join(columns, "|") + "|\n" + body
}

// Cell is a text that fits into a cell of a table.
func Cell(text string) string { return strings.NewReplacer("|", "/", "\n", " ").Replace(text) }

// Rate is a rate with at least three digits.
func Rate(v float64, unit string) string {
	switch {
	case v == 0:
		return ""
	case v < 100:
		return fmt.Sprintf("%.3g %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// Duration is a duration with three digits.
func Duration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// Bytes is a number of bytes in MiB.
func Bytes(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Percent is a share of something.
func Percent(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
