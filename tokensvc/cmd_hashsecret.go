package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"tidings.example/tokensvc/internal/client"
)

type hashSecret struct {
	ClientID string `help:"Print also the SQL that stores the hash for this client." placeholder:"ID"`
	Next     bool   `help:"The SQL stores it as the next secret; the present one stays valid."`
	Cost     int    `default:"10" help:"BCrypt cost, 10 to 14; each step doubles the time of a first authentication."`
}

// Help is shown below the settings.
func (*hashSecret) Help() string {
	return `The secret is read from the terminal, or from standard input up to the first line feed:

    head -c 32 /dev/urandom | base64 | tee secret.txt | tokensvc hash-secret --client-id demo`
}

// Run hashes a secret from the terminal or from standard input.
func (h *hashSecret) Run(std stdio) error {
	secret, err := readSecret(std)
	if err != nil {
		return err
	}
	hash, err := client.HashSecret(secret, h.Cost)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(std.out, hash); err != nil || h.ClientID == "" {
		return err
	}
	column := "client_secret"
	if h.Next {
		column = "client_secret_next"
	}
	_, err = fmt.Fprintf(std.out, "UPDATE clients SET %s = %s WHERE client_id = %s;\n", column, quoteSQL(hash), quoteSQL(h.ClientID))
	return err
}

// quoteSQL returns a string literal of standard SQL, in which a backslash has no special meaning.
func quoteSQL(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func readSecret(std stdio) (string, error) {
	if fd := int(std.in.Fd()); term.IsTerminal(fd) {
		fmt.Fprint(std.err, "Secret: ")
		typed, err := term.ReadPassword(fd)
		fmt.Fprintln(std.err)
		return string(typed), err
	}
	line, err := bufio.NewReader(io.LimitReader(std.in, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the secret from standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}
