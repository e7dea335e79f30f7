package loki

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/logql"
)

// TestPageLimits: the page about Grafana has the limits that are in force.
func TestPageLimits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../deploy/docs/how-to/grafana.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Limits\n")
	if maxTime != time.Minute || maxDelay != 5 {
		t.Error("the page has one minute and 5 seconds")
	}
	for _, row := range []string{
		fmt.Sprintf("| bytes of a request | of a GET's query 8 KiB, of a POST's form %d KiB |", maxBody>>10),
		fmt.Sprintf("| lines of an answer | %d if not said, at most %s |", lineLimit, grouped(maxLines)),
		fmt.Sprintf("| series of an answer of `query` and `query_range` | %d |", maxSeries),
		fmt.Sprintf("| series or streams that are counted for any answer | %s |", grouped(maxInner)),
		fmt.Sprintf("| volumes of an answer | %d if not said, at most %s |", volumeLimit, grouped(maxLines)),
		fmt.Sprintf("| detected fields, or values of one | %s if not said, at most %s, from %d lines if not said, at most %s |",
			grouped(fieldLimit), grouped(maxLines), lineLimit, grouped(maxLines)),
		fmt.Sprintf("| names in `targetLabels`, selectors in `match[]` | %d each |", maxNames),
		fmt.Sprintf("| steps of a range | %s of at least a millisecond |", grouped(maxPoints)),
		fmt.Sprintf("| counters of a query: series × beginnings and ends of windows | %s |", grouped(maxCells)),
		fmt.Sprintf("| versions of events that a query looks at | %s |", grouped(maxLooked)),
		fmt.Sprintf("| bytes of an answer | %d MiB |", maxBytes>>20),
		fmt.Sprintf("| streams whose labels a query looks at, after `=` and `!=` | %s |", grouped(maxStreams)),
		fmt.Sprintf("| expression, regular expression | %d KiB, %d KiB |", logql.MaxLength>>10, logql.MaxRegexp>>10),
		fmt.Sprintf("| instructions of all regular expressions of a query together | %s |", grouped(logql.MaxInstructions)),
		fmt.Sprintf("| alternatives of all line filters of a query together (`\\|~ \"a\" or \"b\"` has two) | %d |", logql.MaxAlternatives),
		"| time of a query | one minute |",
		"| `delay_for` of a tail | 5 seconds, and without effect |",
	} {
		if !strings.Contains(section, row+"\n") {
			t.Errorf("the page lacks the row\n%s", row)
		}
	}
}

// grouped formats a number with commas between thousands.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
