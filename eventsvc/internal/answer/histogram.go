package answer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/printable"
)

// drawing is a histogram as text: a line for each bucket, with a bar of segments.
//
//	TIME (UTC)    COUNT
//	11-23 14:00      12  ####========
//	11-23 14:05       3  ==
//	            2 empty
//	11-23 14:20      40  ###########=============================
//
//	55 in all: # Warning 15, = Normal 40
type drawing struct {
	Screen
	answer *Answer
	layout string // of times
	values []segment
	counts []map[string]int64 // of each bucket
	most   int64              // in one bucket
	digits int                // of the greatest count
}

// segment is how the values of a dimension are drawn.
type segment struct {
	value  string
	total  int64
	glyph  string
	colour string
}

// Bars. Without colours they are ASCII, as then nothing is known of the terminal.
var (
	plainGlyphs  = []string{"#", "=", "+", "o", "."}
	colourGlyphs = []string{"█", "▓", "▒", "░", "·"}
	barColours   = []string{"\x1b[36m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[90m"} // that of a warning is its own
)

const (
	defaultWidth = 80 // of output that is no terminal
	minBar       = 10
	maxEmpty     = 3 // empty buckets in a row that have a line each
)

// Screen is what a drawing has to know of a terminal.
type Screen struct {
	Width  int // columns; 0: unlimited
	Colour bool
	Zone   *time.Location
}

// Histogram draws an answer that has buckets. It returns nothing if none of them counts anything.
func Histogram(a *Answer, s Screen) ([]byte, error) {
	if a.Total == 0 || len(a.Buckets) == 0 {
		return nil, nil
	}
	if time.Duration(a.Step) < time.Second {
		return nil, errors.New("the server sent a histogram without a step")
	}
	d := &drawing{Screen: s, answer: a}
	d.Width = cmp.Or(d.Width, defaultWidth)
	if err := d.prepare(); err != nil {
		return nil, err
	}
	return d.draw(), nil
}

// prepare finds the values, the longest bar, and how times are written.
func (d *drawing) prepare() error {
	totals := map[string]int64{}
	for i := range d.answer.Buckets {
		b := &d.answer.Buckets[i]
		counts, err := b.counts()
		if err != nil {
			return err
		}
		if len(counts) == 0 {
			counts[""] = b.Count
		}
		for value, n := range counts {
			totals[value] += n
		}
		d.most = max(d.most, b.Count)
		d.counts = append(d.counts, counts)
	}
	d.digits = max(len(strconv.FormatInt(d.most, 10)), len("COUNT"))
	d.values = segments(totals, d.Colour)
	first, last := d.answer.Buckets[0].Start.In(d.Zone), d.answer.Buckets[len(d.answer.Buckets)-1].Start.In(d.Zone)
	step := time.Duration(d.answer.Step)
	switch {
	case step%(24*time.Hour) == 0 && first.Hour()+first.Minute() == 0: // days of the zone begin where buckets do
		d.layout = time.DateOnly
	case step%time.Minute != 0:
		d.layout = "01-02 15:04:05"
	default:
		d.layout = "01-02 15:04"
	}
	if first.Year() != last.Year() && d.layout != time.DateOnly {
		d.layout = "2006-" + d.layout
	}
	return nil
}

// segments returns how the most frequent values are drawn, warnings first; the others are one.
func segments(totals map[string]int64, colour bool) []segment {
	values := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		return cmp.Or(-boolean(a == corev1.EventTypeWarning)+boolean(b == corev1.EventTypeWarning), boolean(a == OtherValues)-boolean(b == OtherValues),
			cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b))
	})
	var all []segment
	for i, value := range values {
		s := segment{value: value, total: totals[value], glyph: plainGlyphs[min(i, len(plainGlyphs)-1)]}
		if colour {
			s.glyph, s.colour = colourGlyphs[min(i, len(colourGlyphs)-1)], barColours[min(i, len(barColours)-1)]
			if value == corev1.EventTypeWarning {
				s.colour = terminal.Warning
			}
		}
		if last := len(plainGlyphs) - 1; i > last {
			all[last].value, all[last].total = OtherValues, all[last].total+s.total
			continue
		}
		all = append(all, s)
	}
	return all
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// draw returns the whole text.
func (d *drawing) draw() []byte {
	var out bytes.Buffer
	zone, _ := d.answer.Buckets[0].Start.In(d.Zone).Zone()
	label := max(len(d.layout), len("TIME ()")+len(zone))
	fmt.Fprintf(&out, "%-*s   %*s\n", label, "TIME ("+zone+")", d.digits, "COUNT")
	room := max(d.Width-label-d.digits-6, minBar)
	step := time.Duration(d.answer.Step)
	begin := max(d.answer.Range.From.Unix(), d.answer.HistoryFrom.Unix())
	for i := range d.answer.Buckets {
		b := &d.answer.Buckets[i]
		n := d.steps(begin, b.Start.Unix())
		d.empty(&out, label, b.Start.Add(-time.Duration(n)*step), n)
		begin = b.Start.Add(step).Unix()
		line := fmt.Sprintf("%-*s   %*d   %s", label, b.Start.In(d.Zone).Format(d.layout), d.digits, b.Count, d.bar(b.Count, d.counts[i], room))
		out.WriteString(strings.TrimRight(line, " ") + d.away(b.Start, b.Start.Add(step)) + "\n")
	}
	d.empty(&out, label, time.Unix(begin, 0), d.steps(begin, d.answer.Range.To.Unix()))
	fmt.Fprintf(&out, "\n%d in all", d.answer.Total)
	for i, s := range d.values {
		if s.value != "" {
			out.WriteString([]string{": ", ", "}[min(i, 1)] + d.paint(s, s.glyph) + " " + printable.OneLine(s.value) + " " + strconv.FormatInt(s.total, 10))
		}
	}
	out.WriteString("\n")
	return out.Bytes()
}

// steps returns how many buckets it takes from a time until another, in seconds since 1970.
func (d *drawing) steps(from, to int64) int64 {
	size := int64(time.Duration(d.answer.Step) / time.Second)
	return max(to-from+size-1, 0) / size
}

// empty writes empty buckets: a few with a line each, more as one line.
func (d *drawing) empty(out *bytes.Buffer, label int, from time.Time, n int64) {
	step := time.Duration(d.answer.Step)
	if n > maxEmpty {
		fmt.Fprintf(out, "%*s%s\n", label, fmt.Sprintf("%d empty", n), d.away(from, from.Add(time.Duration(n)*step)))
		return
	}
	for ; n > 0; n-- {
		fmt.Fprintf(out, "%-*s   %*d%s\n", label, from.In(d.Zone).Format(d.layout), d.digits, 0, d.away(from, from.Add(step)))
		from = from.Add(step)
	}
}

// away says if events may be missing within a time.
func (d *drawing) away(from, to time.Time) string {
	for _, gap := range d.answer.Gaps {
		if gap.From.Before(to) && gap.To.After(from) {
			return "   ? the mirror was away"
		}
	}
	return ""
}

// bar returns the bar of a bucket. Whatever is not nothing has at least one column.
func (d *drawing) bar(count int64, counts map[string]int64, room int) string {
	if count <= 0 {
		return ""
	}
	columns := max(int(float64(room)*float64(count)/float64(d.most)+0.5), 1)
	var text strings.Builder
	named := map[string]bool{}
	for _, s := range d.values {
		named[s.value] = true
	}
	var upTo int64
	drawn := 0
	for _, s := range d.values {
		n := counts[s.value]
		if s.value == OtherValues {
			for value, more := range counts {
				if !named[value] {
					n += more
				}
			}
		}
		upTo += n
		end := min(int(float64(columns)*float64(upTo)/float64(count)+0.5), columns)
		if end > drawn {
			text.WriteString(d.paint(s, strings.Repeat(s.glyph, end-drawn)))
			drawn = end
		}
	}
	return text.String()
}

func (d *drawing) paint(s segment, text string) string {
	if s.colour == "" {
		return text
	}
	return s.colour + text + terminal.Off
}
