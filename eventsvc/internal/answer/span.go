package answer

import (
	"errors"
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
	var total time.Duration
	for i, one := range map[int]time.Duration{1: 7 * 24 * time.Hour, 2: 24 * time.Hour} {
		if parts != nil && len(parts[i]) > 0 {
			n, _ := strconv.Atoi(string(parts[i])) // four digits
			total += time.Duration(n) * one
		}
	}
	var rest time.Duration
	err := errSpan
	if parts != nil {
		if rest, err = time.ParseDuration(string(parts[3])); len(parts[3]) == 0 && total > 0 {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("%q is no duration: write numbers with units, such as 90s, 1h30m, 7d or 2w", text)
	}
	*d = Span(total + rest)
	return nil
}

// spanForm is weeks, days, and what Go reads.
var spanForm = regexp.MustCompile(`^(?:(\d{1,4})w)?(?:(\d{1,4})d)?(.*)$`)

var errSpan = errors.New("no duration")

// String returns the duration as Go writes it.
func (d Span) String() string { return time.Duration(d).String() }

// Ago returns the duration as a time of the API, relative to now.
func (d Span) Ago() string { return "-" + d.Seconds() }

// Seconds returns the duration as the API reads it.
func (d Span) Seconds() string { return fmt.Sprintf("%.0fs", time.Duration(d).Seconds()) }
