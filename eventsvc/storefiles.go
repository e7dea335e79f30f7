package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/dump"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/load"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
	"tidings.example/shared/safefile"
)

// storeCommands are the commands for the whole store.
type storeCommands struct {
	Backup  backup  `cmd:"" help:"Write a backup of all events and their old versions, of a running service or of its files."`
	Restore restore `cmd:"" help:"Create a data directory from a backup."`
	Check   check   `cmd:"" help:"Read everything that is stored and report damage."`
	Compact compact `cmd:"" help:"Free disk space now; the service frees it by itself over time."`
	Usage   usageC  `cmd:"" help:"Show what takes the room, who writes most, and how old events get."`
	Export  export  `cmd:"" help:"Write events as JSON, one a line: all of them, or the changes since a revision."`
	Import  importC `cmd:"" help:"Store the events of any file: exports, lists of kubectl, watches, logs, support bundles."`
	Open    openC   `cmd:"" help:"Show the events of files on this machine: console, kubectl and both APIs, in one command."`
	Digest  digestC `cmd:"" help:"Print a checksum of all events, to compare two stores."`
}

// storeSettings has the settings that locate the store.
type storeSettings struct {
	DataDir     string `default:"var/eventsvc" placeholder:"DIR" help:"The data directory."`
	ListenAdmin string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"The admin listener of the service, which is asked while it has the files open."`
}

// printer has the setting that says how a result is printed.
type printer struct {
	JSON bool `name:"json" help:"Print the result as JSON."`
}

// open opens the files of the store or, if a service has them open, returns a client
// of that service. The lock of the files decides, so it is always exactly one. Only with
// grow may the store be made, and get new events: that needs free space.
func (p *storeSettings) open(grow bool, formats *codec.Codec) (s admin.Store, closeStore func() error, err error) {
	o := bolt.Options{Dir: filepath.Join(p.DataDir, "store"), MaxBytes: -1}
	if !grow {
		if err := p.exists(); err != nil {
			return nil, nil, err
		}
		o.MinFree = -1
	}
	db, err := bolt.Open(o)
	if errors.Is(err, store.ErrInUse) {
		remote, err := admin.NewRemote(p.DataDir, p.ListenAdmin)
		return remote, func() error { return nil }, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--data-dir %s: %w", p.DataDir, err)
	}
	return admin.Local{DB: db, Codec: formats}, db.Close, nil
}

// writable returns an error if the store that was opened is the copy of a database, and closes it then.
func (p *storeSettings) writable(s admin.Store, closeStore func() error) error {
	if _, ours := s.(admin.Local); !ours { // a service has it open, which writes to the database
		return nil
	}
	copied, err := postgres.IsCopy(filepath.Join(p.DataDir, "store"))
	if err == nil && copied {
		err = fmt.Errorf("--data-dir %s holds the copy of a database: start the service with --store-dsn, and import then", p.DataDir)
	}
	if err != nil {
		return errors.Join(err, closeStore())
	}
	return nil
}

// exists returns an error unless there is a store, because opening would create one.
func (p *storeSettings) exists() error {
	there, err := bolt.Holds(filepath.Join(p.DataDir, "store"))
	if err == nil && !there {
		return cli.Usagef("--data-dir %s holds no events: name the data directory of the service", p.DataDir)
	}
	if err != nil {
		return fmt.Errorf("--data-dir %s: %w; run this as the user of the service", p.DataDir, err)
	}
	return nil
}

// print prints the result, as text or as JSON.
func (p printer) print(out io.Writer, result any, text string) error {
	if !p.JSON {
		_, err := fmt.Fprintln(out, printable.Lines(text))
		return err
	}
	line, err := json.Marshal(result)
	if err == nil {
		_, err = out.Write(append(printable.JSON(line), '\n'))
	}
	return err
}

// progress returns a function that shows the progress on a line of the terminal, if
// there is one, and one that clears the line.
func (s stdio) progress(what string) (tell store.Progress, done func()) {
	return terminal.Percent(s.err, what)
}

// save writes what work writes to the file of the result, and counts it there.
func (p *storeSettings) save(std stdio, what string, result *admin.Written, formats *codec.Codec, work func(admin.Store, admin.Open) error) error {
	s, closeStore, err := p.open(false, formats)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }() // the store was only read
	progress, done := std.progress(what)
	defer done()
	return write(result.File, std.out, func(w io.Writer) error { return work(s, result.Count(w, progress)) })
}

// write calls work to write a new file or, for "-", standard output.
func write(path string, stdout io.Writer, work func(io.Writer) error) error {
	if path == "-" {
		return work(stdout)
	}
	f, err := safefile.Create(path)
	if err != nil {
		return err
	}
	return f.Finish(work(f))
}

// reading has the settings that say how files are read.
type reading struct {
	Cluster string            `env:"-" placeholder:"NAME" help:"The cluster that the events come from, as their label; never mix two clusters without it."`
	Relabel bool              `env:"-" help:"With --cluster: make events of another cluster ones of this. Otherwise these are named, and left as they are."`
	Label   map[string]string `env:"-" short:"l" placeholder:"NAME=VALUE;..." help:"Labels that the events get."`
	Time    time.Time         `env:"-" placeholder:"TIME" help:"The time of events that have none, in RFC 3339."`
	Strict  bool              `env:"-" help:"Store nothing of a file in which anything is wrong or would not be kept."`
}

// options returns how files are read, with their progress shown as that of a command, and what clears the progress.
func (r *reading) options(std stdio, command string, formats *codec.Codec) (o load.Options, done func(), err error) {
	labels, err := dump.LabelsOf(r.Cluster, r.Label)
	if err != nil {
		return o, nil, &cli.UsageError{Err: err}
	}
	decode := func(v event.View, text []byte) (*eventsv1.Event, error) {
		ev, _, err := formats.Decoder.DecodeEvent(v, "application/json", text, metav1.FieldValidationStrict)
		return ev, err
	}
	tell, done := terminal.Files(std.err, command)
	o.Options = dump.Options{Labels: labels, Relabel: r.Relabel, Time: r.Time, Decode: decode, Progress: tell, Stdin: os.Stdin}
	o.Strict = r.Strict
	return o, done, nil
}

// openInput opens a file, or standard input for "-", whose size is not known.
func openInput(path string) (in *os.File, size int64, err error) {
	if path == "-" {
		return os.Stdin, 0, nil
	}
	if in, err = os.Open(path); err != nil {
		return nil, 0, fmt.Errorf("%w: name a file that can be read, or - for the input", err)
	}
	info, err := in.Stat()
	if err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	return in, size, err
}
