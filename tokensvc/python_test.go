package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPythonClients: requests-oauthlib and Authlib get tokens, PyJWT verifies them.
func TestPythonClients(t *testing.T) {
	t.Parallel()
	python := pythonClients(t)
	r := start(t, "--clients-file", clientsFile(t))
	if out, err := exec.CommandContext(t.Context(), python, "testdata/stock_client.py", r.api).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPythonBasic: Authlib sends Basic credentials raw.
func TestPythonBasic(t *testing.T) {
	t.Parallel()
	python := pythonClients(t)
	r := oddClient(t)
	if out, err := exec.CommandContext(t.Context(), python, "testdata/basic_client.py", r.api, "demo", oddSecret).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPythonMetadata: Authlib, which insists on the members that the standards require, accepts the metadata.
func TestPythonMetadata(t *testing.T) {
	t.Parallel()
	python := pythonClients(t)
	for _, args := range [][]string{nil, {"--client-secret-basic", "--private-key-jwt"}} {
		r := start(t, append(args, "--clients-file", clientsFile(t), "--public-url", "https://tokens.example", "--issuer", "https://tokens.example")...)
		if out, err := exec.CommandContext(t.Context(), python, "testdata/metadata_client.py", r.api).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// TestPythonAssertions: Authlib signs assertions with a client's key by each algorithm, for an hour as it always does,
// and requests-oauthlib sends a workload's assertion.
func TestPythonAssertions(t *testing.T) {
	t.Parallel()
	python := pythonClients(t)
	c := newCluster(t, "https://cluster.example", "k1")
	for _, alg := range []string{"RS256", "ES256", "EdDSA"} {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			key, jwks := newClientKey(t, "demo.pem", "--algorithm", strings.Replace(alg, "EdDSA", "Ed25519", 1)) // Authlib has the older name
			issuers := tempFile(t, "issuers.yaml", fmt.Sprintf("- {issuer: %q, jwksFile: %q}\n", c.name, tempFile(t, "jwks.json", c.jwks("k1"))))
			clients := workloads + "- {client_id: demo, client_name: Demo, scope: read, jwks: " + strings.TrimSpace(jwks) + "}\n"
			r := start(t, "--clients-file", tempFile(t, "clients.yaml", clients), "--trusted-issuers-file", issuers,
				"--private-key-jwt", "--assertion-lifetime", "1h")
			assertion := tempFile(t, "token", c.token("k1", "shop:batch", "http://tokens.test"))
			cmd := exec.CommandContext(t.Context(), python, "testdata/assertion_client.py", r.api, "http://tokens.test", key, alg, assertion)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// pythonClients returns the Python that has the stock clients, or skips the test.
func pythonClients(t *testing.T) string {
	t.Helper()
	const python = "/usr/bin/python3" // the one that Debian's packages are for
	if err := exec.Command(python, "-c", "import authlib, jwt, requests_oauthlib").Run(); err != nil {
		const missing = "needs the Debian packages python3-authlib, python3-jwt and python3-requests-oauthlib"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	return python
}
