package answer

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Span is a time.Duration that can be written in days and weeks too.
type Span time.Duration

// UnmarshalText reads a duration such as 90s, 1h30m, 7d, 1d12h or 2w.
func (d *Span) UnmarshalText(text []byte) error {
	parts := spanForm.FindSubmatch(text)
	weeks, _ := strconv.Atoi(string(parts[1])) // four digits, or nothing
	days, _ := strconv.Atoi(string(parts[2]))
	total := time.Duration(7*weeks+days) * 24 * time.Hour
	if rest := string(parts[3]); rest != "" || total == 0 {
		more, err := time.ParseDuration(rest)
		if err != nil {
			return fmt.Errorf("%q is no duration: write numbers with units, such as 90s, 1h30m, 7d or 2w", text)
		}
		total += more
	}
	*d = Span(total)
	return nil
}

// spanForm is weeks, days, and what Go reads. It matches any text.
var spanForm = regexp.MustCompile(`(?s)^(?:(\d{1,4})w)?(?:(\d{1,4})d)?(.*)$`)

// String returns the duration as Go writes it.
func (d Span) String() string { return time.Duration(d).String() }

// Ago returns the duration as a time of the API, relative to now.
func (d Span) Ago() string { return "-" + d.Seconds() }

// Seconds returns the duration as the API reads it.
func (d Span) Seconds() string { return fmt.Sprintf("%.0fs", time.Duration(d).Seconds()) }
