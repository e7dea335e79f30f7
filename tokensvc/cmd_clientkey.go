package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tidings.example/shared/cli"
	"tidings.example/shared/safefile"
	"tidings.example/tokensvc/internal/clientkey"
)

// clientKeys has the commands for the keys of clients.
type clientKeys struct {
	New  clientKeyNew  `cmd:"" help:"Make a key for a client, and print the public key to register."`
	Show clientKeyShow `cmd:"" help:"Print the public keys of private keys, to register them."`
}

// Help is shown below the commands.
func (*clientKeys) Help() string {
	return `A client with a key of its own needs no secret (private_key_jwt, RFC 7523). Make the key where the client runs:

    tokensvc client-key new reporter.pem --client-id reporter

Register what it prints, as "jwks" of the client, and start the service with --private-key-jwt. To replace a key, register
both until every instance of the client uses the new one:

    tokensvc client-key new next.pem
    tokensvc client-key show reporter.pem next.pem --client-id reporter`
}

// registered has the settings of how public keys are printed.
type registered struct {
	ClientID string `help:"Print also the SQL that stores the keys for this client." placeholder:"ID"`
	PEM      bool   `name:"pem" help:"Print public keys in PEM, for \"public_keys\", instead of a JWK set for \"jwks\"."`
}

// print prints the public keys.
func (r registered) print(std stdio, keys ...*clientkey.Private) error {
	column := "jwks"
	text, err := clientkey.JWKS(keys...)
	if r.PEM {
		column = "public_keys"
		text, err = clientkey.PublicPEM(keys...)
	}
	if err != nil {
		return err
	}
	text = bytes.TrimSpace(text)
	if _, err := fmt.Fprintln(std.out, string(text)); err != nil || r.ClientID == "" {
		return err
	}
	_, err = fmt.Fprintf(std.out, "UPDATE clients SET %s = %s WHERE client_id = %s;\n", column, quoteSQL(string(text)), quoteSQL(r.ClientID))
	return err
}

type clientKeyNew struct {
	File       string `arg:"" help:"File to write the private key to; it must not exist."`
	Algorithm  string `enum:"ES256,Ed25519,EdDSA,RS256" default:"ES256" help:"Algorithm of the key, as printed. EdDSA is the older name of Ed25519."`
	registered `embed:""`
}

// Run makes a key.
func (c *clientKeyNew) Run(std stdio) error {
	key, err := clientkey.New(c.Algorithm)
	if err != nil {
		return err
	}
	text, err := key.PEM()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return cli.Usagef("%w; name a file that does not exist yet", err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close(), safefile.Sync(filepath.Dir(c.File))); err != nil {
		return err
	}
	return c.print(std, key)
}

type clientKeyShow struct {
	Files      []string `arg:"" name:"file" help:"Files with private keys in PEM."`
	registered `embed:""`
}

// Run prints the public keys.
func (c *clientKeyShow) Run(std stdio) error {
	if len(c.Files) > clientkey.MaxKeys {
		return cli.Usagef("a client can have at most %d keys", clientkey.MaxKeys)
	}
	var keys []*clientkey.Private
	for _, name := range c.Files {
		key, err := readClientKey(name)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	return c.print(std, keys...)
}

// readClientKey reads a private key in PEM.
func readClientKey(name string) (*clientkey.Private, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, cli.Usagef("%w; `tokensvc client-key new` makes a key", err)
	}
	key, err := clientkey.ParsePrivate(text)
	if err != nil {
		return nil, cli.Usagef("%s: %w", name, err)
	}
	return key, nil
}
