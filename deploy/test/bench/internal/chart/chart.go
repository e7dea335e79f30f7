// Package chart draws how eventsvc compares with its peers, from figures that
// were measured in one run with all of them: with kube-apiserver, and with a log store.
package chart

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// sideBySide is where and when the figures of comparisons were measured.
const sideBySide = "22 November 2026, one run on 2 cores (AMD EPYC, ext4) that servers and load share: eventsvc at 407056d, " +
	"kube-apiserver 1.36 on etcd 3.6.14 and on kine 0.16.4 with SQLite"

// figure is a rate in operations per second or, if that is zero, a time or, if that is zero too, MiB.
type figure struct {
	rate      float64
	time      time.Duration
	mebibytes float64
}

// comparison is the same work of the same load generator, done by eventsvc and by its peers.
type comparison struct {
	title string
	ours  [2]figure // before and after the peers, because the machine's speed changed within the run
	peers [2]figure // kube-apiserver on etcd, and on kine
}

// comparisons is what the chart shows: TLS and HTTP/2, 10,000 stored events of 1 kB.
var comparisons = []comparison{
	{"create, 64 connections", rates(4_499, 6_492), rates(1_668, 1_218)},
	{"create, 1 connection, p50", spans(670, 520), spans(1_320, 1_690)},
	{"get by name, 64 connections", rates(8_131, 13_649), rates(3_241, 2_568)},
	{"merge patch, 16 connections", rates(3_728, 5_540), rates(1_044, 772)},
	{"list of 10,000, JSON, p50", spans(83_000, 42_000), spans(330_000, 477_000)},
	{"list of 10,000, protobuf, p50", spans(58_000, 34_000), spans(195_000, 299_000)},
	{"list of 10,000 in pages of 500, p50", spans(106_000, 68_000), spans(360_000, 1_212_000)},
	{"selector that matches 1 %, p50", spans(2_200, 1_000), spans(109_000, 232_000)},
	{"1 watcher at 200 creates/s, p50", spans(1_230, 1_310), spans(1_910, 2_370)},
	{"100 watchers at 200 creates/s, p99", spans(6_400, 4_600), spans(366_000, 1_072_000)},
	{"1,000 watchers at 200 creates/s, deliveries", rates(181_000, 194_000), rates(23_400, 19_800)},
	{"1,000 watchers at saturation, deliveries", rates(314_000, 188_000), rates(20_600, 19_000)},
}

func rates(a, b float64) [2]figure { return [2]figure{{rate: a}, {rate: b}} }

// spans takes microseconds.
func spans(a, b time.Duration) [2]figure {
	return [2]figure{{time: a * time.Microsecond}, {time: b * time.Microsecond}}
}

// better reports whether f is the better figure.
func (f figure) better(than figure) bool {
	return f.of(than) > 1
}

// of returns how many times better f is.
func (f figure) of(than figure) float64 {
	switch {
	case f.rate > 0:
		return f.rate / than.rate
	case f.time > 0:
		return float64(than.time) / float64(f.time)
	}
	return than.mebibytes / f.mebibytes
}

func (f figure) String() string {
	switch {
	case f.rate >= 10_000:
		return fmt.Sprintf("%d,%03d/s", int(f.rate)/1000, int(f.rate)%1000)
	case f.rate > 0:
		return fmt.Sprintf("%.0f/s", f.rate)
	case f.time > 0:
		return fmt.Sprintf("%.3g ms", float64(f.time)/1e6)
	}
	return fmt.Sprintf("%.0f MiB", f.mebibytes)
}

// worst returns the worse run of eventsvc and the better peer.
func (c *comparison) worst() (ours, peer figure) {
	ours, peer = c.ours[0], c.peers[0]
	if ours.better(c.ours[1]) {
		ours = c.ours[1]
	}
	if c.peers[1].better(peer) {
		peer = c.peers[1]
	}
	return ours, peer
}

// The chart's measures, in pixels.
const (
	chartWidth = 900
	barsLeft   = 330
	barsWidth  = 330
	lineHeight = 26
	chartHead  = 93
)

// longest is the factor that the longest bar stands for. A longer one is cut: its number says by how much.
const longest = 10.0

// drawing is what an SVG shows.
type drawing struct {
	title, headline string
	below           []string // lines below the headline
	comparisons     []comparison
}

// Draw returns an SVG of horizontal bars: how many times better than the better kube-apiserver
// eventsvc is in its worse run. The line at 1 is that peer.
func Draw() string {
	where, what, _ := strings.Cut(sideBySide, ": ")
	return (&drawing{
		title: "eventsvc beside kube-apiserver", headline: "eventsvc in its worse run of two, beside the better peer in each row",
		below: []string{where + ":", what + ".", "TLS and HTTP/2. " + legend}, comparisons: comparisons,
	}).draw()
}

// legend says how to read the bars.
var legend = fmt.Sprintf("Longer is better; the line is the peer, and bars are cut at %.0f ×.", longest)

func (d *drawing) draw() string {
	height := chartHead + lineHeight*len(d.comparisons) + 14
	scale := barsWidth / longest
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="13" role="img">`+"\n", chartWidth, height)
	fmt.Fprintf(&svg, "<title>%s</title>\n", html.EscapeString(d.title))
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, height)
	fmt.Fprintf(&svg, `<text x="16" y="24" font-size="15" font-weight="bold" fill="#1f2933">%s</text>`+"\n", html.EscapeString(d.headline))
	for i, line := range d.below {
		fmt.Fprintf(&svg, `<text x="16" y="%d" fill="#52606d">%s</text>`+"\n", 43+17*i, html.EscapeString(line))
	}
	for i, c := range d.comparisons {
		ours, peer := c.worst()
		times := ours.of(peer)
		y := chartHead + lineHeight*i
		colour := "#2f6f4f"
		if times < 1 {
			colour = "#b4552d"
		}
		length := min(times, longest) * scale
		fmt.Fprintf(&svg, `<text x="%d" y="%d" text-anchor="end" fill="#1f2933">%s</text>`+"\n", barsLeft-10, y+17, html.EscapeString(c.title))
		fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", barsLeft, y+4, length, lineHeight-8, colour)
		if times > longest { // a gap before the end
			fmt.Fprintf(&svg, `<path d="M%.1f %d l6 -%d" stroke="#ffffff" stroke-width="3"/>`+"\n", barsLeft+length-14, y+lineHeight-3, lineHeight-6)
		}
		fmt.Fprintf(&svg, `<text x="%.1f" y="%d" fill="#52606d"><tspan font-weight="bold" fill="#1f2933">%.1f ×</tspan>  %s against %s</text>`+"\n",
			barsLeft+max(length, scale)+8, y+17, times, ours, peer)
	}
	fmt.Fprintf(&svg, `<line x1="%.1[1]f" y1="%[2]d" x2="%.1[1]f" y2="%[3]d" stroke="#1f2933" stroke-dasharray="3 3"/>`+"\n", barsLeft+scale, chartHead, height-12)
	svg.WriteString("</svg>\n")
	return svg.String()
}
