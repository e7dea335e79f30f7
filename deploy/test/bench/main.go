// Bench measures the built binaries of tokensvc and eventsvc, with their
// default settings, over loopback. It starts both, puts load on them, verifies
// their answers, and prints one table together with what this machine can do at
// most.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tidings.example/deploy/test/bench/internal/attack"
	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/target"
)

// options are the flags.
type options struct {
	bin, dir, rows, result, profiles, cgroup string
	long, peers                              bool
	events                                   int
	duration                                 time.Duration
	tries                                    int
	typed                                    []string // those that decide what is measured, as given
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == floor.Command {
		fail(floor.Serve(os.Args[2], os.Args[3], os.Args[4]))
	}
	if len(os.Args) == 5 && os.Args[1] == attack.Command {
		fail(attack.Send(os.Args[2], os.Args[3], os.Args[4]))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fail(run(ctx, os.Args[1:], os.Stdout))
}

func fail(err error) {
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := &bench{ctx: ctx, out: out, hashes: sync.OnceValues(target.SecretHashes)}
	if err := b.parse(args, out); err != nil {
		return err
	}
	var err error
	if b.tmp, err = os.MkdirTemp(b.dir, "tidings-bench"); err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer os.RemoveAll(b.tmp)
	meter, err := floor.NewSpeedometer(b.tmp)
	if err != nil {
		return err
	}
	b.speed = meter.Read
	err = errors.Join(b.run(b.stages()), meter.Stop())
	if len(b.results) > 0 {
		err = errors.Join(err, b.report())
	}
	return err
}

func (o *options) parse(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.bin, "bin", "../../../bin", "`directory` of the binaries tokensvc and eventsvc")
	flags.StringVar(&o.dir, "dir", "", "`directory` for the data, on the disk to measure (default: the system's for temporary files)")
	flags.StringVar(&o.rows, "rows", "", "comma-separated `names` of rows or of groups of them, such as create,watch/100 (default: all)")
	flags.BoolVar(&o.long, "long", false, "the long form: rows with a million events, and more samples; about half an hour")
	flags.BoolVar(&o.peers, "peers", false, "measure a log store beside the rows logs/ too; it is built from its module, which takes a network and some minutes")
	flags.IntVar(&o.events, "events", millionEvents, "how many `events` the rows logs/ are of")
	flags.DurationVar(&o.duration, "duration", 0, "how long a row is measured (default 2s, in the long form 10s)")
	flags.IntVar(&o.tries, "tries", 3, "how often a row is measured at most while other processes disturb it")
	flags.StringVar(&o.result, "out", "", "`file` for the result (default: RESULTS.md, or none with -rows)")
	flags.StringVar(&o.profiles, "profile", "", "`directory` for a CPU profile of the server in each row, where it offers them")
	flags.StringVar(&o.cgroup, "cgroup", "", "`directory` of a control group with a memory limit, to run the services in")
	flags.Usage = func() {
		fmt.Fprintf(out, "bench measures tokensvc and eventsvc. Flags:\n\n")
		flags.PrintDefaults()
		fmt.Fprintf(out, "\nRows (* only with -long, ** only with -peers):\n\n%s", o.listRows())
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see -h", flags.Arg(0))
	}
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "rows" || f.Name == "long" || f.Name == "peers" || f.Name == "events" || f.Name == "duration" || f.Name == "tries" {
			o.typed = append(o.typed, "-"+f.Name+"="+f.Value.String())
		}
	})
	return o.complete()
}

// complete fills in what follows from other flags, and checks all of them.
func (o *options) complete() error {
	switch {
	case o.duration < 0 || o.duration > time.Minute:
		return fmt.Errorf("-duration %v: give more than 0 and at most 1m, tokens live for five", o.duration)
	case o.events < 1000 || o.events > 100*millionEvents:
		return fmt.Errorf("-events %d: give 1,000 to 100 million", o.events)
	case o.tries < 1 || o.tries > 10:
		return fmt.Errorf("-tries %d: give 1 to 10", o.tries)
	case o.duration == 0 && o.long:
		o.duration = 10 * time.Second
	case o.duration == 0:
		o.duration = 2 * time.Second
	}
	if o.rows == "" && o.result == "" {
		o.result = "RESULTS.md"
	}
	return o.check()
}

// check refuses rows, directories and binaries that are not there.
func (o *options) check() error {
	var any bool
	for _, s := range o.stages() {
		any = any || len(o.chosen(s.rows)) > 0
	}
	if !any {
		return fmt.Errorf("-rows %s: no row of that name in this form; there are:\n%s", o.rows, o.listRows())
	}
	if _, err := proc.MemoryLimit(o.cgroup); err != nil {
		return err
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return fmt.Errorf("-profile: %w", err)
		}
	}
	for _, name := range []string{"tokensvc", "eventsvc"} {
		if _, err := os.Stat(filepath.Join(o.bin, name)); err != nil {
			return fmt.Errorf("-bin: %w: run make build first", err)
		}
	}
	return nil
}

// stages are all rows, in the order in which they run.
func (o *options) stages() []stage {
	return []stage{floors(), emptyStage(), readStage(), largeStage(), mirrorStage(), millionStage(), queryStage(millionEvents), queryStage(3 * millionEvents), logsStage(o.events), listsStage(), mixStage(millionEvents), mixStage(10 * millionEvents), storeStage(), tokenStage(), postgresStage(), guessStage(), timingStage(), assertionStage(), assertionTimingStage(), secureStage(), attackStage(), strangersStage(), tokenStrangersStage(), gapStage()}
}

func (o *options) listRows() string {
	var text strings.Builder
	for _, s := range o.stages() {
		for _, r := range s.rows {
			name := r.name
			switch {
			case r.long:
				name += " *"
			case r.peers:
				name += " **"
			}
			fmt.Fprintf(&text, "  %-28s %s\n", name, r.goal.text)
		}
	}
	return text.String()
}
