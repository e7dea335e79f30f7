package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"tidings.example/deploy/test/bench/internal/figures"
	"tidings.example/deploy/test/bench/internal/proc"
)

// noisy is the number of cores that others may use before a row is marked.
const noisy = 0.3

// report prints the table and writes it to the result file.
func (b *bench) report() error {
	about, err := proc.Machine(b.tmp)
	if err != nil {
		return err
	}
	limit, err := proc.MemoryLimit(b.cgroup)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# Measured figures\n\nWritten by the benchmark itself; do not edit. Measured on %s.\n\n", time.Now().UTC().Format("2 January 2006, 15:04 UTC"))
	fmt.Fprintf(&text, "- Machine: %s. Server and load generator share the cores; %s.\n", about, limit)
	fmt.Fprintf(&text, "- Command: `%s`; %v a row.\n", b.command(), b.duration)
	fmt.Fprintf(&text, "- Server CPU is user and system time of the measured process per operation, client CPU that of the load generator.\n")
	fmt.Fprintf(&text, "- Machine, in the table: what it gave of floor/hello/64 just before or after the row, whichever was less, in percent of the %d requests/s of the slowest machine that the goals are of.\n", leastHello)
	fmt.Fprintf(&text, "- A row is measured again, %d times in all at most, while that is less than 100 %%, or others take more than %.1f cores; the quietest attempt is shown. Rows that leave many events behind wait as long for a faster machine instead. (n): others were as busy then.\n", b.tries, noisy)
	if f := b.past("floor/hello/64"); f != nil {
		text.WriteString(goalsMachine(f.rate))
	}
	text.WriteString("\n")
	if n := b.noisyRows(); 2*n > len(b.results) {
		fmt.Fprintf(&text, "**%d of %d rows are noisy: repeat this on a quiet machine before quoting rates or latencies.**\n\n", n, len(b.results))
	}
	text.WriteString(b.table())
	fmt.Fprint(b.out, "\n", text.String())
	if b.result == "" {
		return nil
	}
	if err := os.WriteFile(b.result, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// goalsMachine compares this machine with those that the goals were set on.
func goalsMachine(hello float64) string {
	return fmt.Sprintf("- Goals in rates and times are those of machines with %d to %d requests/s of floor/hello/64. This one gave %.0f: %.0f %% of the least.\n",
		leastHello, mostHello, hello, 100*hello/leastHello)
}

// noisyRows counts the rows during which other processes were busy.
func (b *bench) noisyRows() (n int) {
	for _, r := range b.results {
		if r.foreign > noisy {
			n++
		}
	}
	return n
}

// command is what one types to repeat the run.
func (o *options) command() string {
	if len(o.typed) == 0 {
		return "make bench"
	}
	return `make bench BENCH_FLAGS="` + strings.Join(o.typed, " ") + `"`
}

// columns are the titles of a row's cells.
var columns = []string{"row", "rate", "p50", "p95", "p99", "server CPU", "client CPU", "RssAnon", "RssFile", "disk", "machine", "goal", "reached", "remarks"}

// table is the rows as a table.
func (b *bench) table() string {
	var rows [][]string
	for _, r := range b.results {
		rows = append(rows, r.cells(b))
	}
	return figures.Table(columns, rows)
}

// cells are the columns of one row.
func (r *result) cells(b *bench) []string {
	reached := ""
	if r.goal.met != nil {
		reached = "**no**"
		if r.err == nil && r.goal.met(b, r) {
			reached = "yes"
		}
	}
	name := r.name
	if r.foreign > noisy {
		name += " (n)"
	}
	return []string{
		name, figures.Rate(r.rate, r.unit), figures.Duration(r.p50), figures.Duration(r.p95), figures.Duration(r.p99),
		figures.Duration(r.serverCPU), figures.Duration(r.clientCPU), figures.Bytes(r.memory.Anon), figures.Bytes(r.memory.File),
		figures.Bytes(r.disk), figures.Percent(r.hello / leastHello), r.goal.text, reached, figures.Cell(r.note),
	}
}

// line is the row as it is shown while the benchmark goes on.
func (r *result) line(b *bench) string {
	cells := r.cells(b)
	var words []string
	for i, label := range []string{"", "", "p50 ", "p95 ", "p99 ", "CPU ", "client ", "anon ", "file ", "disk ", "machine ", "goal ", "", ""} {
		if i > 0 && cells[i] != "" {
			words = append(words, label+cells[i])
		}
	}
	return strings.Join(words, "  ")
}
