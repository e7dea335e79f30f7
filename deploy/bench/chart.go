package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// peerFigure is what the best of the measured peers does in a row's work, and
// what the row has to be compared with it.
type peerFigure struct {
	title string // of the work, for people
	rate  float64
	p50   time.Duration // instead of a rate, as is p99
	p99   time.Duration
}

// bar is a line of the chart: how many times better than the peer a row is.
type bar struct {
	title, ours, theirs string
	times               float64
}

// bar compares a result with the peer's figure; false if there is none.
func (p *peerFigure) bar(r *result) (bar, bool) {
	span := func(what string, ours, theirs time.Duration) (bar, bool) {
		return bar{p.title + ", " + what, spanText(ours), spanText(theirs), float64(theirs) / float64(max(ours, 1))}, ours > 0
	}
	switch {
	case p == nil || r.err != nil:
		return bar{}, false
	case p.p50 > 0:
		return span("p50", r.p50, p.p50)
	case p.p99 > 0:
		return span("p99", r.p99, p.p99)
	}
	return bar{p.title, rateText(r.rate), rateText(p.rate), r.rate / p.rate}, r.rate > 0
}

func rateText(rate float64) string {
	if rate < 10_000 {
		return fmt.Sprintf("%.0f/s", rate)
	}
	return fmt.Sprintf("%.0f,000/s", rate/1000)
}

func spanText(d time.Duration) string { return fmt.Sprintf("%.3g ms", float64(d)/1e6) }

// bars are the rows that have a peer's figure.
func (b *bench) bars() (all []bar) {
	for _, r := range b.results {
		if one, ok := r.goal.peer.bar(r); ok {
			all = append(all, one)
		}
	}
	return all
}

// writeChart draws the rows that have a peer's figure, beside the result file.
// Without such rows nothing is written.
func (b *bench) writeChart() error {
	bars := b.bars()
	if b.result == "" || len(bars) == 0 {
		return nil
	}
	file := strings.TrimSuffix(b.result, filepath.Ext(b.result)) + ".svg"
	if err := os.WriteFile(file, []byte(chart(bars)), 0o644); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// The chart's measures, in pixels.
const (
	chartWidth = 860
	barsLeft   = 300
	barsWidth  = 330
	lineHeight = 26
	chartHead  = 56
)

// chart is an SVG of horizontal bars: as long as the work is done better than
// by the best peer, which is the line at 1.
func chart(bars []bar) string {
	most := 1.0
	for _, one := range bars {
		most = max(most, one.times)
	}
	height := chartHead + lineHeight*len(bars) + 14
	scale := barsWidth / most
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="13" role="img">`+"\n", chartWidth, height)
	fmt.Fprintf(&svg, "<title>eventsvc beside the best of its peers</title>\n")
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, height)
	fmt.Fprintf(&svg, `<text x="16" y="24" font-size="15" font-weight="bold" fill="#1f2933">eventsvc beside the best peer in each row</text>`+"\n")
	fmt.Fprintf(&svg, `<text x="16" y="43" fill="#52606d">TLS, HTTP/2, bearer tokens; every write on disk before its answer. Longer is better; the line is the peer.</text>`+"\n")
	for i, one := range bars {
		y := chartHead + lineHeight*i
		colour := "#2f6f4f"
		if one.times < 1 {
			colour = "#b4552d"
		}
		fmt.Fprintf(&svg, `<text x="%d" y="%d" text-anchor="end" fill="#1f2933">%s</text>`+"\n", barsLeft-10, y+17, html.EscapeString(one.title))
		fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", barsLeft, y+4, one.times*scale, lineHeight-8, colour)
		fmt.Fprintf(&svg, `<text x="%.1f" y="%d" fill="#52606d"><tspan font-weight="bold" fill="#1f2933">%.1f ×</tspan>  %s against %s</text>`+"\n",
			barsLeft+max(one.times, 1)*scale+8, y+17, one.times, one.ours, one.theirs)
	}
	fmt.Fprintf(&svg, `<line x1="%.1[1]f" y1="%[2]d" x2="%.1[1]f" y2="%[3]d" stroke="#1f2933" stroke-dasharray="3 3"/>`+"\n", barsLeft+scale, chartHead, height-12)
	svg.WriteString("</svg>\n")
	return svg.String()
}
