package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/dumpserver"
	"tidings.example/eventsvc/internal/load"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
	"tidings.example/shared/safefile"
	"tidings.example/shared/service"
)

// openC shows the events of files.
type openC struct {
	File        []string `arg:"" help:"Files and folders that have events in any form; - is standard input."`
	ListenHTTP  string   `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Serve the console and the API here; port 0 is any free one."`
	ListenHTTPS string   `env:"-" default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Serve kubectl here, which sends no token over plain HTTP; empty: not at all."`
	Browser     bool     `env:"-" help:"Open the console in the browser."`
	Keep        string   `env:"-" placeholder:"DIR" help:"Keep the events in this directory, to be opened or served again. Default: nothing is left."`
	reading
}

// Help is the rest of the command's help.
func (*openC) Help() string {
	return `Examples:

    eventsvc open events.json --browser
    eventsvc open must-gather.tar.gz
    kubectl get events -A -o json | eventsvc open -
    docker run --rm -i -p 127.0.0.1:8080:8080 tidings/eventsvc open - --listen-https= < events.json

Reads the files as import does, into a store that is removed at the end, and shows it on this machine: the console, both APIs,
Loki's API and kubectl, all of them only for reading. It prints the addresses, and ends with Ctrl-C. Nothing expires.

Exit codes: 0 after a signal, 1 failed, 2 wrong settings, 3 there are no events in the files, or --strict refuses one,
4 a file of its store could not be written.`
}

// Run reads the files, and serves their events until ctx ends.
func (o *openC) Run(ctx context.Context, std stdio) (err error) {
	if o.ListenHTTP == "" {
		return cli.Usagef("--listen-http is empty: set an address, such as 127.0.0.1:0")
	}
	formats, err := codec.New("k8s.io")
	if err != nil {
		return err
	}
	options, done, err := o.options(std, "open", formats)
	if err != nil {
		return err
	}
	defer done()
	dir := o.Keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "eventsvc-open-"); err != nil {
			return fmt.Errorf("%w: set TMPDIR to a directory that this user may write to, or name one with --keep", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	} else if err := safefile.MkdirAll(dir); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	log, err := service.Logger(std.err, "auto", "warn")
	if err != nil {
		return err
	}
	db, err := bolt.Open(bolt.Options{Dir: filepath.Join(dir, "store"), MaxBytes: -1, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	loaded, err := load.Files(ctx, admin.Local{DB: db, Codec: formats}, o.File, options)
	done()
	for _, text := range loaded.Messages {
		_, _ = fmt.Fprintln(std.err, printable.OneLine(text))
	}
	switch {
	case ctx.Err() != nil:
		return nil // by Ctrl-C
	case errors.Is(err, store.ErrFull):
		return fmt.Errorf("%w: free some room, or name a directory that has more with TMPDIR or --keep", err)
	case err != nil:
		return err
	case loaded.Events == 0:
		return errFindings
	}
	return dumpserver.Serve(ctx, dumpserver.Config{
		ListenHTTP: o.ListenHTTP, ListenHTTPS: o.ListenHTTPS, Browser: o.Browser, Dir: dir, Kept: o.Keep != "",
		DB: db, Codec: formats, Loaded: loaded, Out: std.out, Err: std.err, OnListen: std.listened, Log: log,
	})
}
