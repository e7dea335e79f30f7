package main

import (
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/shared/cli"
)

// TestContradictions has every pair of settings that contradict each other, and files that cannot be used. Each is
// refused at start, with both names and the fix.
func TestContradictions(t *testing.T) {
	t.Parallel()
	file := clientsFile(t)
	clients := []string{"--clients-file=" + file}
	const sources = "of --clients-file (TOKENSVC_CLIENTS_FILE) and --database-dsn or --database-dsn-file (TOKENSVC_DATABASE_DSN, TOKENSVC_DATABASE_DSN_FILE) exactly one must be set, "
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "no clients: " + sources + "none is"},
		{[]string{"--clients-file=x", "--database-dsn=postgres://x"}, "two sources of clients: " + sources + "both are"},
		{[]string{"--database-dsn=postgres://x", "--database-dsn-file=" + file}, "--database-dsn and --database-dsn-file are both set: set only one of them"},
		{append(clients, "--listen-http="), "--public-url must be set where --listen-http is empty"},
		{append(clients, "--listen-http=127.0.0.1:0"), "--public-url must be set where --listen-http leaves the port open (0)"},
		{append(clients, "--listen-http=", "--public-url=http://x"), "both --listen-http and --listen-https are empty; set one"},
		{append(clients, "--listen-https=:0"), "--listen-https needs both --tls-cert-file and --tls-key-file"},
		{append(clients, "--listen-https=:0", "--tls-cert-file=x"), "--listen-https needs both --tls-cert-file and --tls-key-file"},
		{append(clients, "--tls-cert-file=x"), "--tls-cert-file and --tls-key-file go together; set both or none"},
		{append(clients, "--tls-cert-file=x", "--tls-key-file=y"), "--tls-cert-file and --tls-key-file have no effect without --listen-https; set it, or leave them out"},
		{append(clients, "--allowed-hosts=a.example", "--listen-admin="), "--allowed-hosts has no effect without --listen-admin; set both or none"},
		{append(clients, "--allowed-hosts=a.example:1"), `--allowed-hosts: "a.example:1" is no name of a host: give names without scheme, port or *, such as eventsvc.tidings.svc`},
		{append(clients, "--profiles", "--listen-admin="), "--profiles has no effect without --listen-admin; set both or none"},
		{append(clients, "--listen-http=127.0.0.1:9", "--listen-admin=:9"), "--listen-http 127.0.0.1:9 and --listen-admin :9 want the same port: give one of them another"},
		{append(clients, "--signing-key="+t.TempDir(), "--key-rotation=24h"), "--key-rotation is for keys made in memory and --signing-key for keys in files; set one"},
		{append(clients, "--key-rotation=10m"), "--key-rotation is 10m0s and --jwks-max-age 5m0s: a key must live at least four times as long as others remember the published keys"},
		{append(clients, "--jwks-allow-http-host=a.example"), "--jwks-allow-http-host has no effect without --trusted-issuers-file; set both or none"},
		{[]string{"--clients-file=" + filepath.Join(t.TempDir(), "none")}, "--clients-file: open "},
		{[]string{"--clients-file=" + tempFile(t, "wrong.yaml", "clients: none\n")}, "--clients-file: "},
		{append(clients, "--signing-key="+t.TempDir()), "--signing-key: no private RSA key found"},
		{append(clients, "--failure-burst=0"), "--failure-burst is 0 and --failure-queue 8; give at least 1, or --failure-refill 0 for no throttling"},
		{append(clients, "--failure-queue=0"), "--failure-burst is 10 and --failure-queue 0; give at least 1, or --failure-refill 0 for no throttling"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			t.Parallel()
			_, stderr, err := command(t, "", tc.args...)
			if code := cli.ExitCode(err); code != 2 || !strings.Contains(stderr, "tokensvc: "+tc.want) {
				t.Errorf("exit code %d, want 2, and %q\n     lacks %q", code, stderr, tc.want)
			}
		})
	}
}
