package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestHostileTokensOfOthers: tokens made by Python libraries, good and bad, so
// that our tests and our checks are not wrong in the same way.
func TestHostileTokensOfOthers(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // the one that Debian's packages are for
	if err := exec.Command(python, "-c", "import authlib, jwcrypto, jwt").Run(); err != nil {
		unable(t, "needs the Debian packages python3-authlib, python3-jwcrypto and python3-jwt")
	}
	i := newRotating(t)
	p := start(t, t.TempDir(), &issuer{Server: i.Server, key: i.keys["k1"]}, "--jwks-url="+i.URL, "--audience=eventsvc", "--clock-skew=0s")
	der, err := x509.MarshalPKCS8PrivateKey(i.keys["k1"])
	if err != nil {
		t.Fatal(err)
	}
	given, err := json.Marshal(map[string]any{
		"key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "issuer": i.URL, "now": time.Now().Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	make := exec.CommandContext(t.Context(), python, "testdata/hostile.py")
	var problems bytes.Buffer
	make.Stdin, make.Stderr = bytes.NewReader(given), &problems
	out, err := make.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problems.Bytes())
	}
	var rows [][3]any
	if err := json.Unmarshal(out, &rows); err != nil || len(rows) < 150 {
		t.Fatalf("%d tokens, %v", len(rows), err)
	}
	for _, row := range rows {
		name, token, accepted := row[0].(string), row[1].(string), row[2].(bool)
		want := http.StatusUnauthorized
		if accepted {
			want = http.StatusOK
		}
		if len(token) > 32<<10 { // of a header; a token may have half
			want = http.StatusRequestHeaderFieldsTooLarge
		}
		code, text, _ := p.get(bearing(strings.ReplaceAll(token, "\n", "")), "")
		if code != want {
			t.Errorf("%s: %d, want %d: %s", name, code, want, text)
		}
	}
}
