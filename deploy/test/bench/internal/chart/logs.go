package chart

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidings.example/deploy/test/bench/internal/logstore"
)

// logRows are the rows of a table of the benchmark that the chart beside the log store shows, with the column of each.
var logRows = []struct{ row, column, title string }{
	{"load", "rate", "load an export"},
	{"disk", "disk", "disk, compressed"},
	{"memory", "RssAnon", "memory after all questions"},
	{"word", "p50", "a word that is nowhere"},
	{"part", "p50", "a part of a word that is nowhere"},
	{"phrase", "p50", "newest 100 with a phrase, one namespace"},
	{"object", "p50", "all of one object by uid"},
	{"warnings", "p50", "Warnings of a day by namespace"},
	{"histogram", "p50", "a week by hour and type"},
	{"reasons", "p50", "a week by reason"},
}

// DrawLogs returns an SVG like [Draw]: eventsvc beside the log store, from what the benchmark has written of the rows
// logs/ with -peers.
func DrawLogs(measured string) (string, error) {
	busy := ""
	if strings.Contains(measured, "rows are noisy") {
		busy = ", while other processes were busy"
	}
	events := cmp.Or(between(measured, "-events=", " "), "1000000")
	d := drawing{
		title: "eventsvc beside VictoriaLogs", headline: "eventsvc beside VictoriaLogs " + logstore.Version + ", which has no watches and no versions, and syncs later",
		below: []string{strings.TrimSuffix(between(measured, "Measured on ", "\n"), ".") + busy + ".", between(measured, "Machine: ", ". Server") + ".", "The same " + events + " events in both, one client. " + legend},
	}
	header, rows := table(measured)
	for _, want := range logRows {
		ours, err := figureOf(header, rows["logs/"+want.row], want.column)
		peer, failed := figureOf(header, rows["logs/"+want.row+"/peer"], want.column)
		if err := errors.Join(err, failed); err != nil {
			return "", fmt.Errorf("logs/%s: %w", want.row, err)
		}
		d.comparisons = append(d.comparisons, comparison{want.title, [2]figure{ours, ours}, [2]figure{peer, peer}})
	}
	return d.draw(), nil
}

func between(text, before, behind string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, behind)
	return text
}

// table returns the cells of the table in a text by the names of its rows, which have (n) behind them if others were
// busy.
func table(text string) (header []string, rows map[string][]string) {
	rows = map[string][]string{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if header == nil {
			header = cells
			continue
		}
		rows[strings.TrimSuffix(cells[0], " (n)")] = cells
	}
	return header, rows
}

// figureOf reads a cell as package figures writes it.
func figureOf(header, row []string, column string) (f figure, err error) {
	for i, name := range header {
		if name != column || i >= len(row) {
			continue
		}
		number, unit, _ := strings.Cut(row[i], " ")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return f, fmt.Errorf("%s: %w", column, err)
		}
		switch unit {
		case "MiB":
			f.mebibytes = v
		case "µs":
			f.time = time.Duration(v * 1e3)
		case "ms":
			f.time = time.Duration(v * 1e6)
		case "s":
			f.time = time.Duration(v * 1e9)
		default:
			f.rate = v
		}
		return f, nil
	}
	return f, fmt.Errorf("there is no %s", column)
}
