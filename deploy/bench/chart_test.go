package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBars(t *testing.T) {
	t.Parallel()
	b := &bench{results: []*result{
		{rate: 7_000, goal: peer(peerFigure{title: "create", rate: 2_800})},
		{rate: 198_000, goal: peer(peerFigure{title: "deliveries", rate: 99_000})},
		{p50: 50 * time.Millisecond, goal: peer(peerFigure{title: "list", p50: 150 * time.Millisecond})},
		{p99: 8 * time.Millisecond, goal: peer(peerFigure{title: "watch", p99: 4 * time.Millisecond})},
		{rate: 9, goal: peer(peerFigure{title: "broken", rate: 1}), err: errors.New("broken")},
		{rate: 9, goal: atLeast(1)},
	}}
	want := []bar{
		{"create", "7000/s", "2800/s", 2.5},
		{"deliveries", "198,000/s", "99,000/s", 2},
		{"list, p50", "50 ms", "150 ms", 3},
		{"watch, p99", "8 ms", "4 ms", .5},
	}
	if diff := cmp.Diff(want, b.bars(), cmp.AllowUnexported(bar{})); diff != "" {
		t.Error(diff)
	}
}

// TestChart: the chart is well-formed, shows every bar, and is written beside
// the table.
func TestChart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "R.md")
	b := &bench{options: options{result: file}, results: []*result{
		{rate: 7_000, goal: peer(peerFigure{title: "create <64>", rate: 2_800})},
		{p99: 8 * time.Millisecond, goal: peer(peerFigure{title: "watch", p99: 4 * time.Millisecond})},
	}}
	if err := b.writeChart(); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(strings.TrimSuffix(file, "md") + "svg")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, string(text))
		}
	}
	for _, want := range []string{"create <64>", "2.5 ×", "7000/s against 2800/s", "watch, p99", "0.5 ×", "8 ms against 4 ms"} {
		if !strings.Contains(strings.Join(texts, "\n"), want) {
			t.Errorf("the chart does not say %q:\n%s", want, svg)
		}
	}
}
