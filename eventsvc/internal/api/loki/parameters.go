package loki

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/logql"
	"tidings.example/eventsvc/internal/store"
)

// explain turns errors of queries into answers.
func explain(err error) error {
	if parse, ok := errors.AsType[*logql.Error](err); ok {
		return apierrors.NewBadRequest(parse.Error())
	}
	if _, ok := errors.AsType[*store.ExpiredError](err); ok {
		return apierrors.NewServiceUnavailable("the state that the query has begun with is no longer held: please try again")
	}
	return err
}

// period is a range of time that has its start but not its end.
type period struct{ start, end time.Time }

// times returns the range of a request: start and end, or since, or the last hour.
func (r *request) times() (period, error) {
	since := defaultTime
	if text := r.values.Get("since"); text != "" {
		d, err := logql.ParseDuration(text)
		if err != nil {
			return period{}, badRequest("could not parse 'since' parameter: %v", err)
		}
		since = d
	}
	end, err := r.time("end", r.now)
	if err != nil {
		return period{}, err
	}
	last := end
	if last.After(r.now) {
		last = r.now
	}
	start, err := r.time("start", last.Add(-since))
	if err != nil {
		return period{}, err
	}
	if end.Before(start) {
		return period{}, badRequest("end timestamp must not be before or equal to start time")
	}
	return period{start, end}, nil
}

// The times that a parameter may have: those whose nanoseconds fit 64 bits, with room
// for a range and an offset of a hundred years each.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2150, 1, 1, 0, 0, 0, 0, time.UTC)
)

// time reads a time: seconds with or without a fraction, nanoseconds, or RFC 3339. As in
// Loki a whole number of at most ten digits has seconds.
func (r *request) time(name string, fallback time.Time) (time.Time, error) {
	text := r.values.Get(name)
	if text == "" {
		return fallback, nil
	}
	t, ok := parseTime(text)
	if !ok || t.Before(earliest) || t.After(latest) {
		return time.Time{}, badRequest("could not parse '%s' parameter: %q is no time: want seconds or nanoseconds since 1970, or RFC 3339", name, text)
	}
	return t, nil
}

func parseTime(text string) (time.Time, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if len(text) <= 10 {
			return time.Unix(n, 0), true
		}
		return time.Unix(0, n), true
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		seconds, fraction := math.Modf(f)
		ok := math.Abs(seconds) < 1e11 // false for what is no number, too
		return time.Unix(int64(seconds), int64(math.Round(fraction*1000)*1e6)), ok
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}

// step returns the distance of two points, which is whole milliseconds: a duration, or
// seconds. By default a range has 250 points.
func (r *request) step(in period) (time.Duration, error) {
	length := in.end.Sub(in.start)
	step := max(length/250/time.Second*time.Second, time.Second)
	if text := r.values.Get("step"); text != "" {
		var ok bool
		if step, ok = secondsOrDuration(text); !ok {
			return 0, badRequest("cannot parse %q to a valid duration: step is a number of seconds, or a duration such as 1m or 500ms", text)
		}
	}
	switch {
	case step <= 0:
		return 0, badRequest("zero or negative query resolution step widths are not accepted. Try a positive integer")
	case step < time.Millisecond:
		return 0, badRequest("the step %s is less than a millisecond", step)
	case length/step > maxPoints:
		return 0, badRequest("exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter")
	}
	return step.Truncate(time.Millisecond), nil // as in Loki; samples have milliseconds
}

func secondsOrDuration(text string) (time.Duration, bool) {
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(f * float64(time.Second)), math.Abs(f) < 1e9
	}
	d, err := logql.ParseDuration(text)
	return d, err == nil
}

// number reads a limit.
func (r *request) number(name string, fallback, most int) (int, error) {
	text := r.values.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, badRequest("%s is no number: %q", name, text)
	case n <= 0:
		return 0, badRequest("%s must be a positive value", name)
	case n > most:
		return 0, badRequest("max entries limit per query exceeded, limit > max_entries_limit_per_query (%d > %d)", n, most)
	}
	return n, nil
}

// forward reports whether the oldest entries are asked for.
func (r *request) forward() (bool, error) {
	switch text := r.values.Get("direction"); strings.ToLower(text) {
	case "", "backward":
		return false, nil
	case "forward":
		return true, nil
	default:
		return false, badRequest("invalid direction '%s': want forward or backward", text)
	}
}

// selector returns the streams that a parameter selects: all if it is not set.
func (r *request) selector(parse func(string) (*logql.Log, error)) (*logql.Log, error) {
	text := r.values.Get("query")
	if strings.TrimSpace(text) == "" {
		return &logql.Log{}, nil
	}
	return parse(text)
}

// categorized reports whether the client wants to know which label is of which category.
func (r *request) categorized() bool {
	for _, value := range r.Request().Header.Values("X-Loki-Response-Encoding-Flags") {
		for flag := range strings.SplitSeq(value, ",") {
			if strings.TrimSpace(flag) == "categorize-labels" {
				return true
			}
		}
	}
	return false
}
