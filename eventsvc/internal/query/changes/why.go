package changes

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/query"
	"tidings.example/shared/printable"
)

// why says in one sentence what happened, and what the newest event of it says.
func (r *candidate) why(c *comparison) string {
	var b strings.Builder
	window := query.FormatDuration(c.q.Window)
	if r.way == Silent {
		ago := roughly(c.answer.Range.To.Sub(time.Unix(r.first, 0)))
		return fmt.Sprintf("nothing in %s against %s expected (%s); %s, whose newest event came %s ago", window, whole(r.expected), c.of(r.against), r.subject(), ago)
	}
	fmt.Fprintf(&b, "%s %s in %s%s; %s", r.reason, times(r.now), window, r.unlike(c), r.subject())
	if r.objects > 1 {
		fmt.Fprintf(&b, " (%s)", counted(r.objects, "object"))
	}
	if len(r.also) > 0 {
		fmt.Fprintf(&b, "; with %s", strings.Join(r.also, ", "))
	}
	if r.began > 0 {
		fmt.Fprintf(&b, "; since %s, before this window", stamp(time.Unix(r.began, 0)))
	}
	if f := r.formerly(c); f != nil {
		fmt.Fprintf(&b, "; %s", again(f))
	}
	if r.object != "" && r.way != Failing && r.way != Changed {
		fmt.Fprintf(&b, "; began to fail")
	}
	r.beside(c, &b)
	if r.note != "" {
		fmt.Fprintf(&b, ": “%s”", brief(r.note))
	}
	return b.String()
}

// beside says what a row has to do with others: with incidents of it that are over, with the object that was asked
// about, with what it came before and after, and where else it came.
func (r *candidate) beside(c *comparison, b *strings.Builder) {
	if r.parts != nil && r.parts.over != nil {
		fmt.Fprintf(b, "; of these %s", strings.Replace(r.parts.before(), " more", "", 1))
	}
	if c.warned.object != nil && r.own > 0 {
		fmt.Fprintf(b, "; %s about %s", times(r.own), c.warned.object.name)
	}
	if r.anchor != nil {
		fmt.Fprintf(b, "; in the minute before %s of %s began", r.anchor.reason, r.anchor.subject())
	}
	if f := c.cause(r); f != nil {
		fmt.Fprintf(b, "; %s after %s of %s", roughly(time.Duration(max(0, r.onset-f.onset))*time.Second), f.reason, f.subject())
	}
	if r.elsewhere != "" {
		fmt.Fprintf(b, "; %s", r.elsewhere)
	}
}

// unlike says in what a row differs from what was before.
func (r *candidate) unlike(c *comparison) string {
	switch r.way {
	case Again:
		if r.unseen {
			return ", otherwise never in " + c.past()
		}
	case New:
		return ", never before in " + c.past()
	case Failing:
		return ", to an object without a warning before"
	case Changed:
		return fmt.Sprintf(", %s before %s of %s", roughly(time.Duration(max(0, r.explained.onset-r.onset))*time.Second), r.explained.reason, r.explained.subject())
	}
	return fmt.Sprintf(" against %s expected (%s)", whole(r.expected), c.of(r.against))
}

// onAverage is what is expected from all history.
const onAverage = "on average"

// of says of how long an average is.
func (c *comparison) of(against string) string {
	if against != onAverage {
		return against
	}
	return onAverage + " of " + c.past()
}

// past is the length of the history before the window.
func (c *comparison) past() string {
	return roughly(c.answer.Range.From.Sub(c.answer.HistoryFrom))
}

// statistics says what the score of a row is made of.
func (r *candidate) statistics() string {
	if r.way == Changed {
		return fmt.Sprintf("score of %s of %s, raised because the object changed before", r.explained.reason, r.explained.subject())
	}
	var b strings.Builder
	b.WriteString("by chance alone in " + rarely(r.evidence))
	if r.dispersion >= 1.5 {
		b.WriteString(", as much as it varies")
	}
	if r.way == New && r.had > 0 {
		fmt.Fprintf(&b, "; %s had it", counted(r.had, "other namespace"))
	}
	if r.anchor != nil {
		fmt.Fprintf(&b, "; %s in the minute before", times(r.near))
	}
	if r.precedes > 0 {
		fmt.Fprintf(&b, "; before %s", counted(r.precedes, "other change"))
	}
	return b.String()
}

// rarely says in how many windows chance alone exceeds some evidence, in two digits.
func rarely(evidence float64) string {
	const most = 1e6
	one := 1 / math.Erfc(math.Sqrt(evidence/2))
	if !(one < most) {
		return "less than one of 1,000,000 windows"
	}
	digits := math.Pow(10, max(0, math.Floor(math.Log10(one))-1))
	text := strconv.Itoa(int(math.Round(one/digits) * digits))
	if n := len(text) - 3; n > 0 {
		text = text[:n] + "," + text[n:]
	}
	return "one of " + text + " windows"
}

// subject is what a row is about, as Pod api-* in shop.
func (r *candidate) subject() string {
	if r.way == Silent {
		return r.silent.String()
	}
	text := r.kind
	if name := r.name(); name != "" {
		text += " " + name
	}
	if (r.exact != "" || r.named != "") && hasNone[r.kind] {
		return text
	}
	if r.namespace == "" {
		return fmt.Sprintf("%s in %d namespaces", text, len(r.tallies))
	}
	return text + " in " + r.namespace
}

// maxNote bounds the characters of a note in a sentence.
const maxNote = 160

// brief returns the beginning of a note, in one line.
func brief(note string) string {
	runes := []rune(printable.OneLine(note[:min(len(note), 4*maxNote)]))
	if len(runes) > maxNote {
		return string(runes[:maxNote-1]) + "…"
	}
	return string(runes)
}

// roughly formats a duration with two units.
func roughly(d time.Duration) string {
	switch {
	case d >= 24*time.Hour:
		d = d.Truncate(time.Hour)
	case d >= time.Hour:
		d = d.Truncate(time.Minute)
	}
	return query.FormatDuration(d)
}

// whole rounds an expected number of events.
func whole(n float64) string { return strconv.FormatFloat(math.Round(n), 'f', -1, 64) }

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
