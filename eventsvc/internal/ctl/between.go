package ctl

import (
	"strings"
	"time"

	"tidings.example/shared/cli"
)

// between is a range of time, without its end. A zero time is no bound.
type between struct{ from, to time.Time }

// has reports whether a time is in the range.
func (b between) has(t time.Time) bool { return !t.Before(b.from) && (b.to.IsZero() || t.Before(b.to)) }

// between returns the range that --since, --from and --to stand for.
func (g *get) between(now time.Time) (b between, err error) {
	if g.Since > 0 && g.From != "" {
		return b, cli.Usagef("--since and --from exclude each other: set one of them")
	}
	if g.Since > 0 {
		b.from = now.Add(-g.Since)
	}
	if g.From != "" {
		if b.from, err = moment(g.From, now); err != nil {
			return b, cli.Usagef("--from %q is no time: %w", g.From, err)
		}
	}
	if g.To != "" {
		if b.to, err = moment(g.To, now); err != nil {
			return b, cli.Usagef("--to %q is no time: %w", g.To, err)
		}
	}
	if !b.to.IsZero() && !b.from.Before(b.to) {
		return b, cli.Usagef("the range is empty: --to is not after its begin")
	}
	return b, nil
}

// moment reads a time: RFC 3339, local, or a duration before now such as -6h.
func moment(text string, now time.Time) (time.Time, error) {
	if ago, ok := strings.CutPrefix(text, "-"); ok {
		d, err := cli.ParseDuration(ago)
		return now.Add(-d), err
	}
	text, err := instant(text)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, text)
}
