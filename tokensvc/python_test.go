package main

import (
	"os"
	"os/exec"
	"testing"
)

// TestPythonClients: requests-oauthlib and Authlib get tokens, PyJWT verifies them.
func TestPythonClients(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // the one that Debian's packages are for
	if err := exec.Command(python, "-c", "import authlib, jwt, requests_oauthlib").Run(); err != nil {
		const missing = "needs the Debian packages python3-authlib, python3-jwt and python3-requests-oauthlib"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	r := start(t, "--clients-file", clientsFile(t))
	if out, err := exec.CommandContext(t.Context(), python, "testdata/stock_client.py", r.api).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
