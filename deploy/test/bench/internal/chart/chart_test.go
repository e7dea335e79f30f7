package chart

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "draw the chart of the README again")

// The charts of the README, and the figures of the second one.
const (
	chartFile = "../../peers.svg"
	logsChart = "../../logs.svg"
	logsTable = "../../long/logs.md"
)

// TestLogsChart: the chart beside the log store is drawn of what the benchmark has written.
func TestLogsChart(t *testing.T) {
	t.Parallel()
	measured, err := os.ReadFile(logsTable)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := DrawLogs(string(measured))
	if err == nil && *update {
		err = os.WriteFile(logsChart, []byte(drawn), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if file, err := os.ReadFile(logsChart); err != nil || string(file) != drawn {
		t.Errorf("%s is not drawn of %s: run go test ./internal/chart -update in deploy/test/bench: %v", logsChart, logsTable, err)
	}
}

// TestDrawLogs: rows that were lost are shown as rows that were won are, and one that is missing is an error.
func TestDrawLogs(t *testing.T) {
	t.Parallel()
	measured := "Measured on 26 November 2026, 11:00 UTC.\n\n- Machine: 2 cores, Linux 6.18.44. Server and load share them.\n- Command: -events=5000 -peers.\n\n**2 of 3 rows are noisy.**\n\n| row | rate | p50 | RssAnon | disk |\n| --- | --- | --- | --- | --- |\n"
	for _, r := range logRows {
		measured += "| logs/" + r.row + "/peer (n) | 1000 events/s | 2 ms | 30.0 MiB | 10.0 MiB |\n"
		measured += "| logs/" + r.row + " | 50000 events/s | 400 µs | 10.0 MiB | 20.0 MiB |\n"
	}
	drawn, err := DrawLogs(measured)
	for _, want := range []string{"26 November 2026, 11:00 UTC, while other processes were busy.", "5000 events", "2 cores, Linux 6.18.44.", "50.0 ×", "50,000/s against 1000/s", "5.0 ×", "0.4 ms against 2 ms", "3.0 ×", "0.5 ×", "20 MiB against 10 MiB"} {
		if err != nil || !strings.Contains(drawn, want) {
			t.Errorf("no %q: %v\n%s", want, err, drawn)
		}
	}
	if _, err := DrawLogs(strings.Replace(measured, "logs/object |", "logs/other |", 1)); err == nil || !strings.Contains(err.Error(), "logs/object") {
		t.Errorf("without a row: %v", err)
	}
}

// TestChart: the chart of the README is drawn of the figures, and says when and where they were measured.
func TestChart(t *testing.T) {
	t.Parallel()
	drawn := Draw()
	if *update {
		if err := os.WriteFile(chartFile, []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(chartFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(drawn, string(file)); diff != "" {
		t.Errorf("%s is another: run go test ./internal/chart -update in deploy/test/bench\n%s", chartFile, diff)
	}
	var texts []string
	for d := xml.NewDecoder(strings.NewReader(drawn)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, drawn)
		}
		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, string(text))
		}
	}
	for _, want := range []string{
		"22 November 2026", "2 cores (AMD EPYC, ext4)", "kube-apiserver 1.36 on etcd 3.6.14", "kine 0.16.4",
		"create, 64 connections", "2.7 ×", "4499/s against 1668/s", "7.7 ×", "181,000/s against 23,400/s", "57.2 ×", "6.4 ms against 366 ms",
	} {
		if !strings.Contains(strings.Join(texts, "\n"), want) {
			t.Errorf("the chart does not say %q:\n%s", want, drawn)
		}
	}
}

// TestWorst: of two runs of our own the worse counts, of two peers the better.
func TestWorst(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		comparison
		ours, peer string
		times      float64
	}{
		{comparison{"rates", rates(300, 200), rates(50, 100)}, "200/s", "100/s", 2},
		{comparison{"rates, the other way", rates(200, 300), rates(100, 50)}, "200/s", "100/s", 2},
		{comparison{"times", spans(2_000, 1_000), spans(4_000, 8_000)}, "2 ms", "4 ms", 2},
		{comparison{"times, the other way", spans(1_000, 2_000), spans(8_000, 1_000)}, "2 ms", "1 ms", .5},
	} {
		if ours, peer := test.worst(); ours.String() != test.ours || peer.String() != test.peer || ours.of(peer) != test.times {
			t.Errorf("%s: %s against %s, %.1f times; want %s, %s, %.1f", test.title, ours, peer, ours.of(peer), test.ours, test.peer, test.times)
		}
	}
}
