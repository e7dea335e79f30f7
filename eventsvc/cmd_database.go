package main

import (
	"context"
	"fmt"
	"strings"

	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/cli"
)

// database has the commands for a PostgreSQL database of events.
type database struct {
	Migrate databaseMigrate `cmd:"" help:"Make or upgrade the tables; the role must be allowed to."`
	Check   databaseCheck   `cmd:"" help:"Read everything in the database and report what is wrong."`
	Version databaseVersion `cmd:"" help:"Print the version of the tables."`
}

// databasePlace says which database.
type databasePlace struct {
	StoreDSN     string `name:"store-dsn" secret:"" placeholder:"DSN" help:"The PostgreSQL database."`
	StoreDSNFile string `name:"store-dsn-file" placeholder:"FILE" help:"File that holds the DSN."`
	printer
}

// access returns how to reach the database.
func (p *databasePlace) access() (a postgres.Access, err error) {
	if a.DSN, err = cli.Secret("store-dsn", p.StoreDSN, p.StoreDSNFile); err == nil && a.DSN == "" {
		err = cli.Usagef("--store-dsn and --store-dsn-file are not set: set one of them")
	}
	return a, err
}

type databaseMigrate struct {
	databasePlace
	ServiceRole string `placeholder:"ROLE" help:"The role of serve, which is granted what it needs, and may not change the tables."`
}

// Help is the rest of the command's help.
func (*databaseMigrate) Help() string {
	return `Examples:

    eventsvc database migrate --store-dsn-file owner-dsn --service-role eventsvc

The tables are in the schema eventsvc. The role of this command owns them. It needs the right to create the schema, unless
it owns the schema already. Everything happens in one transaction, and services may run meanwhile. A second call changes
nothing.` + exitCodes
}

// Run brings the schema to the version of this program.
func (m *databaseMigrate) Run(ctx context.Context, std stdio) error {
	a, err := m.access()
	if err != nil {
		return err
	}
	s, err := postgres.Migrate(ctx, a, m.ServiceRole)
	if err != nil {
		return fmt.Errorf("--store-dsn: %w", err)
	}
	return m.print(std.out, s, fmt.Sprintf("the schema has version %d (%s)", s.Version, s.Name))
}

type databaseVersion struct{ databasePlace }

// Run prints the version of the schema. It returns an error if this program cannot serve from it.
func (v *databaseVersion) Run(ctx context.Context, std stdio) error {
	a, err := v.access()
	if err != nil {
		return err
	}
	s, err := postgres.ReadSchema(ctx, a)
	if err != nil {
		return fmt.Errorf("--store-dsn: %w", err)
	}
	if err := v.print(std.out, s, fmt.Sprintf("the schema has version %d, this program knows %d", s.Version, s.Known)); err != nil {
		return err
	}
	return s.Usable()
}

type databaseCheck struct{ databasePlace }

// Help is the rest of the command's help.
func (*databaseCheck) Help() string {
	return `Examples:

    eventsvc database check --store-dsn-file dsn --json | jq .problems

Compares the log of changes with the list of events, in one snapshot. Writes may go on meanwhile. It also names settings of the
server that lessen a promise, such as a missing synchronous standby. The copy of a replica is checked with "eventsvc
check".` + exitCodes
}

// Run prints what is wrong.
func (c *databaseCheck) Run(ctx context.Context, std stdio) error {
	a, err := c.access()
	if err != nil {
		return err
	}
	r, err := postgres.Check(ctx, a)
	if err != nil {
		return fmt.Errorf("--store-dsn: %w", err)
	}
	text := fmt.Sprintf("revision %d in epoch %d: %d events in %d records of %s, no problem found", r.Revision, r.Epoch, r.Events, r.Records, terminal.MiB(r.Bytes))
	if len(r.Problems) > 0 {
		text = strings.Join(r.Problems, "\n")
	}
	for _, note := range r.Notes {
		text += "\nnote: " + note
	}
	if err := c.print(std.out, r, text); err != nil || len(r.Problems) == 0 {
		return err
	}
	return errFindings
}
