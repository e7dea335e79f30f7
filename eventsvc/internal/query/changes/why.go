package changes

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/query"
)

// why says in one sentence where a row's score is from.
func (r *candidate) why(c *comparison) string {
	var b strings.Builder
	where := "in " + r.namespace
	if r.namespace == "" {
		where = fmt.Sprintf("in %d namespaces", len(r.tallies))
	}
	window, history := query.FormatDuration(c.q.Window), query.FormatDuration(c.answer.Range.From.Sub(c.answer.HistoryFrom))
	switch r.way {
	case New:
		fmt.Fprintf(&b, "%s of %s was never seen %s in %s of history and came %s in %s", r.reason, r.kind, where, history, times(r.now), window)
		if r.had > 0 {
			fmt.Fprintf(&b, ", but %s had it", counted(r.had, "other namespace"))
		}
	case Failing:
		fmt.Fprintf(&b, "%s %s had no warning %s before and %s %s in %s", r.kind, r.object, where, r.reason, times(r.now), window)
	default:
		fmt.Fprintf(&b, "%s of %s came %s %s in %s, against %s expected (%s)",
			r.reason, r.kind, times(r.now), where, window, strconv.FormatFloat(round(r.expected), 'f', -1, 64), r.against)
	}
	if len(r.also) > 0 {
		fmt.Fprintf(&b, "; so did %s", strings.Join(r.also, ", "))
	}
	if r.anchor != nil {
		fmt.Fprintf(&b, "; %s in the minute before %s of %s began", times(r.near), r.anchor.reason, r.anchor.kind)
	}
	if r.objects > 1 {
		fmt.Fprintf(&b, "; %s", counted(r.objects, "object"))
	}
	if r.object != "" && r.way != Failing {
		fmt.Fprintf(&b, "; %s began to fail", r.object)
	}
	if c.warned.object != nil && r.own > 0 {
		fmt.Fprintf(&b, "; %s about %s", times(r.own), c.warned.object.name)
	}
	if r.follows != nil {
		fmt.Fprintf(&b, "; %s after %s of %s", query.FormatDuration(time.Duration(r.onset-r.follows.onset)*time.Second), r.follows.reason, r.follows.kind)
	}
	if r.precedes > 0 {
		fmt.Fprintf(&b, "; before %s", counted(r.precedes, "other change"))
	}
	fmt.Fprintf(&b, "; G² %.1f over a dispersion of %.1f.", r.evidence*r.dispersion, r.dispersion)
	return b.String()
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
