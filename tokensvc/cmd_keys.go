package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"tidings.example/tokensvc/internal/keyring"
)

// keys has the commands for signing keys in files.
type keys struct {
	Inspect keysInspect `cmd:"" help:"Show the keys and where each is in its life."`
	Rotate  keysRotate  `cmd:"" help:"Add a key that signs once everybody has had time to learn about it, and delete keys that are gone."`
}

// Help is shown below the commands.
func (*keys) Help() string {
	return `Rotate from cron:

    tokensvc keys rotate --signing-key /etc/tokensvc/keys

Keys are PEM files in a directory that all replicas see. The name of a file is the time from which its key signs
(20261121T090000Z.pem). The service sees a new file within a second, without a restart or a signal.`
}

// keyFolder has the settings that the key commands share with serve. Their values must be the same there.
type keyFolder struct {
	SigningKey    string        `required:"" help:"Directory of PEM files, as given to serve." placeholder:"DIR"`
	KeyID         string        `name:"key-id" enum:"uuid,thumbprint" default:"uuid" help:"Form of \"kid\", as given to serve."`
	JwksMaxAge    time.Duration `name:"jwks-max-age" default:"5m" help:"For how long others may remember the published keys, as given to serve."`
	TokenLifetime time.Duration `default:"300s" help:"Lifetime of tokens, as given to serve."`
}

func (f keyFolder) config() keyring.Config {
	return keyring.Config{MaxAge: f.JwksMaxAge, Lifetime: f.TokenLifetime, Format: keyring.TokenForm{Thumbprint: f.KeyID == "thumbprint"}}
}

type keysInspect struct {
	keyFolder `embed:""`
}

// Run prints a table of the keys.
func (k *keysInspect) Run(std stdio) error { return k.print(std) }

func (f keyFolder) print(std stdio) error {
	list, err := keyring.Inspect(f.SigningKey, f.config())
	if err != nil {
		return fmt.Errorf("--signing-key: %w", err)
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY ID\tSTATE\tSIGNS FROM\tPUBLISHED UNTIL\tBITS\tFILE")
	for _, s := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", s.KeyID, s.State, timeText(s.From), timeText(s.Until), s.Bits, s.File)
	}
	return table.Flush()
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

type keysRotate struct {
	keyFolder `embed:""`
}

// Run adds a key, deletes the files of keys that are gone, and prints the remaining keys.
func (k *keysRotate) Run(std stdio) error {
	if err := keyring.AddFile(k.SigningKey, k.config()); err != nil {
		return fmt.Errorf("--signing-key: %w", err)
	}
	list, err := keyring.Inspect(k.SigningKey, k.config())
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.State == keyring.Gone {
			err = errors.Join(err, os.Remove(s.File))
		}
	}
	return errors.Join(err, k.print(std))
}
