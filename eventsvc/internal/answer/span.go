package answer

import (
	"fmt"
	"time"

	"tidings.example/shared/cli"
)

// Span is a time.Duration that can be written in days and weeks too.
type Span time.Duration

// UnmarshalText reads a duration such as 90s, 1h30m, 7d, 1d12h or 2w.
func (d *Span) UnmarshalText(text []byte) error {
	parsed, err := cli.ParseDuration(string(text))
	*d = Span(parsed)
	return err
}

// String returns the duration as Go writes it.
func (d Span) String() string { return time.Duration(d).String() }

// Ago returns the duration as a time of the API, relative to now.
func (d Span) Ago() string { return "-" + d.Seconds() }

// Seconds returns the duration as the API reads it.
func (d Span) Seconds() string { return fmt.Sprintf("%.0fs", time.Duration(d).Seconds()) }
