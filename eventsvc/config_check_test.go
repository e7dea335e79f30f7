package main

import (
	"strings"
	"testing"
)

// TestContradictions has every pair of settings that contradict each other. A start refuses each pair, names both
// settings and says what to do.
func TestContradictions(t *testing.T) {
	t.Parallel()
	empty := writeFile(t, "issuers.yaml", "[]")
	const issuer = "--issuer=http://127.0.0.1:1"
	const keys = "(--jwks-url or jwksURL, --issuer-ca-file or caFile, --jwks-allow-http-host): "
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--console"}, "--issuer is not set, nor is --issuers-file: name whose tokens to accept, for instance --issuer=http://127.0.0.1:9000"},
		{[]string{"--issuers-file=x", "--audience=eventsvc"}, "--jwks-url, --issuer-ca-file, --audience and --claims are of --issuer, which is not set: use the fields of --issuers-file"},
		{[]string{"--issuers-file=" + empty}, "--issuers-file: " + empty + ": the file lists no issuer, and --issuer is not set: list one whose tokens to accept"},
		{[]string{"--issuer=opaque"}, `--issuer "opaque" is no http(s) URL whose metadata could name the keys, and --jwks-url is not set: set --jwks-url`},
		{[]string{"--issuer=http://tokens.example"}, "keys of the issuer http://tokens.example " + keys + `"http://tokens.example" is plain HTTP to another machine: use https, or allow the host "tokens.example" where the network is trusted`},
		{[]string{issuer, "--jwks-url=http://keys.example/jwks"}, "keys of the issuer http://127.0.0.1:1 " + keys + `JWKS: "http://keys.example/jwks" is plain HTTP to another machine: use https, or allow the host "keys.example" where the network is trusted`},
		{[]string{issuer, "--issuer-ca-file=x"}, "keys of the issuer http://127.0.0.1:1 " + keys + "caFile has no effect on http://127.0.0.1:1, which is plain HTTP: set https or no authorities"},
		{[]string{issuer, "--public-url=events.example"}, `--public-url "events.example" is no http(s) URL without user, query and fragment, such as https://events.example`},
		{[]string{issuer, "--public-url=https://events.example?x"}, `--public-url "https://events.example?x" is no http(s) URL without user, query and fragment, such as https://events.example`},
		{[]string{issuer, "--basic-token-url=http://tokens.example/oauth2/token"}, `--basic-token-url (with --jwks-allow-http-host): "http://tokens.example/oauth2/token" is plain HTTP to another machine: use https, or allow the host "tokens.example" where the network is trusted; none switches it off`},
		{[]string{issuer, "--basic-token-url=tokens.example"}, `--basic-token-url (with --jwks-allow-http-host): "tokens.example" is no URL of the form https://host/path; none switches it off`},
		{[]string{issuer, "--trusted-proxy=127.0.0.256"}, `--trusted-proxy "127.0.0.256" is neither an address nor a prefix such as 10.0.0.0/8`},
		{[]string{issuer, "--basic-token-url=http://127.0.0.1:9/t", "--trusted-proxy=proxy"}, `--trusted-proxy "proxy" is neither an address nor a prefix such as 10.0.0.0/8`},
		{[]string{issuer, "--claims=team"}, "--claims has no effect without --policy-file: set both or none"},
		{[]string{issuer, "--no-console", "--console-token-url=none"}, "--console-token-url has no effect without the console: set it without --no-console, or not at all"},
		{[]string{issuer, "--console-token-url=tokens.example"}, `--console-token-url "tokens.example" is no http(s) URL, such as http://127.0.0.1:9000/oauth2/token, and not none`},
		{[]string{issuer, "--listen-http=", "--listen-https="}, "--listen-http and --listen-https are both empty: set at least one, or nobody can reach the API"},
		{[]string{issuer, "--listen-https=:0"}, "--listen-https needs a certificate: set --tls-cert-file and --tls-key-file, or --tls-self-signed"},
		{[]string{issuer, "--tls-cert-file=x"}, "--tls-cert-file and --tls-key-file go together: set both or none"},
		{[]string{issuer, "--tls-key-file=x"}, "--tls-cert-file and --tls-key-file go together: set both or none"},
		{[]string{issuer, "--tls-cert-file=x", "--tls-key-file=y"}, "--tls-cert-file is set but --listen-https is not: set --listen-https too, or neither"},
		{[]string{issuer, "--listen-https=:0", "--tls-self-signed", "--tls-cert-file=x", "--tls-key-file=y"}, "--tls-self-signed and --tls-cert-file exclude each other: set one of them"},
		{[]string{issuer, "--tls-self-signed"}, "--tls-self-signed is set but --listen-https is not: set --listen-https too, or neither"},
		{[]string{issuer, "--listen-https=:0", "--tls-self-signed", "--tls-hosts="}, "--tls-self-signed needs --tls-hosts: name the hosts that clients will ask for"},
		{[]string{issuer, "--tls-ca-configmap=tidings/eventsvc-ca"}, "--tls-ca-configmap has no effect without --tls-self-signed: set both or none"},
		{[]string{issuer, "--tls-hosts=events.example"}, "--tls-hosts has no effect without --tls-self-signed: set both or none"},
		{[]string{issuer, "--allowed-hosts=a.example"}, "--allowed-hosts is set but --listen-admin is empty: set both or none"},
		{[]string{issuer, "--listen-admin=127.0.0.1:0", "--allowed-hosts=*.example"}, `--allowed-hosts: "*.example" is no name of a host: give names without scheme, port or *, such as eventsvc.tidings.svc`},
		{[]string{issuer, "--profiles"}, "--profiles is set but --listen-admin is empty: set both or none"},
		{[]string{issuer, "--listen-http=127.0.0.1:9", "--listen-admin=0.0.0.0:9"}, "--listen-http 127.0.0.1:9 and --listen-admin 0.0.0.0:9 want the same port: give one of them another"},
		{[]string{issuer, "--retention=30D"}, `--retention: "30D" is no duration: write numbers with units, such as 90s, 1h30m, 30d or 2w`},
		{[]string{issuer, "--compress-after=30D"}, `--compress-after: "30D" is neither a duration such as 1h or 30d nor off`},
		{[]string{issuer, "--audit-file=x"}, "--audit-file has no effect without --audit: set both or none"},
		{[]string{"mirror", "--cluster=a", "--context=x"}, "--context has no effect without --kubeconfig: set both or none"},
		{[]string{"record", "--file=x", "--name=y"}, "--name and --file exclude each other: many events cannot have one name"},
		{[]string{"get", "--namespace=a", "--all-namespaces"}, "--namespace and --all-namespaces exclude each other: set one of them"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			args := c.args
			if strings.HasPrefix(args[0], "-") {
				args = append([]string{"serve", "--listen-http=127.0.0.1:0", "--listen-admin=", "--data-dir=" + t.TempDir()}, args...)
			}
			if printed := refused(t, args); !strings.Contains(printed, "eventsvc: "+c.want) {
				t.Errorf("%q\n lacks %q", printed, c.want)
			}
		})
	}
}
