package cli

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// Duration is a duration in a YAML file. [ParseDuration] reads it.
type Duration time.Duration

// UnmarshalYAML implements [yaml.Unmarshaler].
func (d *Duration) UnmarshalYAML(value *yaml.Node) error {
	read, err := ParseDuration(value.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", value.Line, err)
	}
	*d = Duration(read)
	return nil
}

// ParseDuration reads a duration such as 90s, 1h30m, 30d, 1d12h or 2w: weeks and days, followed by a duration of
// [time.ParseDuration]. A day has 24 hours. All durations in flags, environment variables and files are read by it.
func ParseDuration(text string) (time.Duration, error) {
	parts := durationForm.FindStringSubmatch(text)
	weeks, _ := strconv.Atoi(parts[1]) // four digits, or nothing
	days, _ := strconv.Atoi(parts[2])
	total := time.Duration(7*weeks+days) * 24 * time.Hour
	rest := parts[3]
	if rest == "" && text != "" {
		return total, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || rest != text && more < 0 || total+more < total && more > 0 {
		return 0, fmt.Errorf("%q is no duration: write numbers with units, such as 90s, 1h30m, 30d or 2w", text)
	}
	return total + more, nil
}

// Age is a duration, or off.
type Age struct {
	after time.Duration
	off   bool
}

// UnmarshalText reads a duration, or off.
func (a *Age) UnmarshalText(text []byte) error {
	after, err := ParseDuration(string(text))
	off := string(text) == "off"
	if !off && (err != nil || after < 0) {
		return fmt.Errorf("%q is neither a duration such as 1h or 30d nor off", text)
	}
	*a = Age{after, off}
	return nil
}

// String is the age as it is written.
func (a Age) String() string {
	if a.off {
		return "off"
	}
	return a.after.String()
}

// OrZero returns the age, and 0 for "off". An age of 0 is the shortest that is not off.
func (a Age) OrZero() time.Duration {
	if a.off {
		return 0
	}
	return max(time.Nanosecond, a.after)
}

// durationForm is weeks, days, and what Go reads. It matches any text.
var durationForm = regexp.MustCompile(`(?s)^(?:(\d{1,4})w)?(?:(\d{1,4})d)?(.*)$`)

// decodeDuration makes kong read durations by [ParseDuration].
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := ParseDuration(text)
	target.SetInt(int64(d))
	return err
}
