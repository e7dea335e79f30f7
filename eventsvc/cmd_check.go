package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/cli"
)

// check reads everything that is stored.
type check struct {
	DropDamaged bool `help:"Drop what cannot be read, and the history, so that everything else can be listed, backed up and exported again. The service must be stopped."`
	storeSettings
	printer
}

// Help is the rest of the command's help.
func (*check) Help() string {
	return `Examples:

    eventsvc check
    eventsvc check --json | jq .problems
    eventsvc check --drop-damaged

Reads the pages of all files and verifies the checksum of every record. It compares the index with the log, and with an
index that is rebuilt from the log. Writes may go on meanwhile.` + exitCodesOfWriters
}

// Run prints the problems that were found.
func (c *check) Run(ctx context.Context, std stdio) error {
	dropped, err := c.drop(ctx, std)
	if err != nil {
		return err
	}
	report, err := c.report(ctx, std)
	if err != nil {
		return err
	}
	report.Dropped = append(dropped.Damage, dropped.Events...)
	text := fmt.Sprintf("revision %d: %d events in %d records of %s, no problem found", report.Revision, report.Live, report.Records, terminal.MiB(report.Bytes))
	if n := len(report.Problems); n > 0 {
		text = strings.Join(report.Problems, "\n") + fmt.Sprintf("\nproblems found: %d; \"eventsvc restore\" a backup into a new data directory, or go on with this one: what is damaged is never served", n)
	}
	for _, damage := range dropped.Damage {
		text = "dropped: " + damage + "\n" + text
	}
	for _, name := range dropped.Events {
		text = "dropped: event " + name + "\n" + text
	}
	if err := c.print(std.out, report, text); err != nil || len(report.Problems)+len(report.Dropped) == 0 {
		return err
	}
	return errFindings
}

// drop drops what cannot be read, if that is asked for.
func (c *check) drop(ctx context.Context, std stdio) (dropped maintenance.Dropped, err error) {
	if !c.DropDamaged {
		return dropped, nil
	}
	if err := c.exists(); err != nil {
		return dropped, err
	}
	dir := filepath.Join(c.DataDir, "store")
	switch copied, err := postgres.IsCopy(dir); {
	case err != nil:
		return dropped, err
	case copied:
		return dropped, cli.Usagef("--data-dir %s holds the copy of a database: remove it, and the service makes it again", c.DataDir)
	}
	progress, done := std.progress("drop what is damaged")
	defer done()
	dropped, err = bolt.DropDamaged(ctx, bolt.Options{Dir: dir, MaxBytes: -1, MinFree: -1}, progress)
	if errors.Is(err, store.ErrInUse) {
		err = cli.Usagef("--drop-damaged: stop the service that uses --data-dir %s first", c.DataDir)
	}
	return dropped, err
}

func (c *check) report(ctx context.Context, std stdio) (*store.Report, error) {
	s, closeStore, err := c.open(false, nil)
	if damage := store.DamageOf(err); damage != nil {
		return damage.Report, nil
	} else if err != nil {
		return nil, err
	}
	progress, done := std.progress("check")
	defer done()
	report, err := s.Check(ctx, progress)
	return report, errors.Join(err, closeStore())
}
