package queries

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
	"tidings.example/eventsvc/internal/store"
)

// period is a range of time in whole seconds. Its end is not part of it.
type period struct{ from, to time.Time }

// period returns the range of a request: from its cursor, or from its parameters,
// widened to whole seconds. Without them it is the last hour or, where the endpoint is
// about all of history, begins at zero.
func (r *request) period() (period, error) {
	if r.cursor != nil {
		return period{time.Unix(r.cursor.From, 0).UTC(), time.Unix(r.cursor.To, 0).UTC()}, nil
	}
	now := r.Now()
	if r.endpoint.instant {
		return r.window(now)
	}
	to, err := instant("to", r.given.Get("to"), now, now.Truncate(time.Second).Add(time.Second))
	if err != nil {
		return period{}, err
	}
	begin := now.Add(-time.Hour)
	switch {
	case r.endpoint.allHistory:
		begin = time.Time{}
	case r.given.Get("to") != "":
		begin = to.Add(-time.Hour)
	}
	from, err := instant("from", r.given.Get("from"), now, begin)
	if err != nil {
		return period{}, err
	}
	in := period{from.Truncate(time.Second), store.Ceil(to)}
	if !in.from.Before(in.to) {
		return period{}, badRequest("to", "the range ends at %s, before it begins at %s: from must be before to",
			in.to.Format(time.RFC3339), in.from.Format(time.RFC3339))
	}
	return in, nil
}

// window returns the window of a request that is about an instant.
func (r *request) window(now time.Time) (period, error) {
	at, err := instant("at", r.given.Get("at"), now, now.Truncate(time.Second).Add(time.Second))
	if err != nil {
		return period{}, err
	}
	window := changes.DefaultWindow
	if text := r.given.Get("window"); text != "" {
		if window, err = duration(text); err != nil {
			return period{}, badRequest("window", "%v", err)
		}
		if window < changes.MinWindow || window > changes.MaxWindow {
			return period{}, badRequest("window", "%s is not within %s and %s", text, query.FormatDuration(changes.MinWindow), query.FormatDuration(changes.MaxWindow))
		}
	}
	return period{store.Ceil(at).Add(-window), store.Ceil(at)}, nil
}

// instant reads a time: RFC 3339, or relative to now.
func instant(parameter, text string, now, fallback time.Time) (time.Time, error) {
	if text == "" {
		return fallback.UTC(), nil
	}
	// A plus sign in a query stands for a blank, which people forget.
	relative, isRelative := strings.CutPrefix(strings.ReplaceAll(text, " ", "+"), "now")
	if relative == "" {
		return now.UTC(), nil
	}
	if sign := relative[0]; sign == '-' || sign == '+' {
		d, err := duration(relative[1:])
		if err != nil {
			return time.Time{}, badRequest(parameter, "%q is no time: %v", text, err)
		}
		if sign == '-' {
			d = -d
		}
		return now.Add(d).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, relative)
	if err != nil || isRelative || t.Year() < 1 || t.UTC().Year() > 9999 {
		return time.Time{}, badRequest(parameter, "%q is no time: write it as 2026-01-02T15:04:05Z (RFC 3339), or relative to now as -6h, -7d or now", text)
	}
	return t.UTC(), nil
}

// units are the units of durations, in seconds.
var units = map[byte]int64{'w': 7 * 86400, 'd': 86400, 'h': 3600, 'm': 60, 's': 1}

// maxSeconds bounds durations: 200 years.
const maxSeconds = 200 * 366 * 86400

// duration reads a duration such as 90s, 1h30m, 7d or 2w.
func duration(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is no duration: write it as 90s, 5m, 1h30m, 7d or 2w", text)
	var total int64
	for rest := text; rest != ""; {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 32)
		if err != nil || digits == len(rest) {
			return 0, bad
		}
		seconds := units[rest[digits]]
		if total += n * seconds; seconds == 0 || total > maxSeconds {
			return 0, bad
		}
		rest = rest[digits+1:]
	}
	if total == 0 {
		return 0, bad
	}
	return time.Duration(total) * time.Second, nil
}
