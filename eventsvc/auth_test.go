package main

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/shared/certtest"
	"tidings.example/shared/cli"
	"tidings.example/shared/waittest"
)

// rotating is an issuer whose keys change. Its tokens are put together by hand.
type rotating struct {
	*httptest.Server
	mu      sync.Mutex
	keys    map[string]*rsa.PrivateKey
	fetches int
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	r := &rotating{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fetches++
		var keys []string
		for kid, key := range r.keys {
			keys = append(keys, fmt.Sprintf(`{"kty":"RSA","kid":%q,"n":%q,"e":%q}`, kid, encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes())))
		}
		_, _ = fmt.Fprintf(w, `{"keys":[%s]}`, strings.Join(keys, ","))
	}))
	t.Cleanup(r.Close)
	r.rotate(t, "k1")
	return r
}

// rotate withdraws all keys and publishes a new one.
func (r *rotating) rotate(t *testing.T, kid string) {
	t.Helper()
	key := certtest.RSA(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = map[string]*rsa.PrivateKey{kid: key}
}

// signed is a token with this header and payload under a key of the issuer.
func (r *rotating) signed(kid, header, payload string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return signedBy(r.keys[kid], header, payload)
}

func signedBy(key *rsa.PrivateKey, header, payload string) string {
	input := encode([]byte(header)) + "." + encode([]byte(payload))
	sum := sha256.Sum256([]byte(input))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return input + "." + encode(signature)
}

// payload is a good one with some members changed: name, JSON value, …
func (r *rotating) payload(changes ...string) string {
	now := time.Now().Unix()
	members := map[string]json.RawMessage{
		"iss": json.RawMessage(`"` + r.URL + `"`), "sub": json.RawMessage(`"demo"`), "aud": json.RawMessage(`"eventsvc"`),
		"iat": json.RawMessage(fmt.Sprint(now)), "nbf": json.RawMessage(fmt.Sprint(now)), "exp": json.RawMessage(fmt.Sprint(now + 3000)),
	}
	for ; len(changes) > 0; changes = changes[2:] {
		members[changes[0]] = json.RawMessage(changes[1])
		if changes[1] == "" {
			delete(members, changes[0])
		}
	}
	b, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// token is a good one of a client with a scope.
func (r *rotating) token(kid, client, scope string) string {
	return r.signed(kid, fmt.Sprintf(`{"alg":"RS256","kid":%q}`, kid), r.payload("sub", `"`+client+`"`, "scope", `"`+scope+`"`))
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// watching opens a watch and returns what it sends, line by line; the channel
// is closed at the clean end of the stream.
func (p *process) watching(token string) <-chan string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet,
		p.url("--listen-http")+eventsPath+"?watch=1&allowWatchBookmarks=true", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatal(resp, err)
	}
	lines := make(chan string, 100)
	go func() {
		defer func() { _ = resp.Body.Close() }()
		scan := bufio.NewScanner(resp.Body)
		for scan.Scan() {
			lines <- scan.Text()
		}
		if scan.Err() == nil {
			close(lines)
		}
	}()
	return lines
}

// ended waits for the end of a watch and checks that a bookmark was its last word.
func ended(t *testing.T, lines <-chan string) {
	t.Helper()
	last := ""
	for line := waittest.Within(t, lines); line != ""; line = waittest.Within(t, lines) {
		last = line
	}
	if !strings.Contains(last, `"type":"BOOKMARK"`) {
		t.Errorf("the last word of the watch is %s", last)
	}
}

// TestPolicyFile: the running service follows its policy file, and a watch ends
// when the file takes its right away.
func TestPolicyFile(t *testing.T) {
	t.Parallel()
	i := newRotating(t)
	path := writeFile(t, "policy.yaml", "bindings: [{role: 'events:admin', subjects: [{clientID: demo}]}]")
	p := start(t, t.TempDir(), &issuer{Server: i.Server, key: i.keys["k1"]}, "--jwks-url="+i.URL, "--policy-file="+path)
	demo, reader := i.token("k1", "demo", ""), i.token("k1", "reader", "events:read")
	expect := func(token, method string, want int) {
		t.Helper()
		p.token = token
		waittest.Becomes(t, func() error {
			if code, object := p.do(method, eventsPath, "{}"); code != want {
				return fmt.Errorf("%s: %d %v, want %d", method, code, object, want)
			}
			return nil
		})
	}
	expect(demo, "POST", 422) // may, but an empty object is no event
	expect(reader, "GET", 200)
	expect(reader, "POST", 403)
	mine, other := p.watching(demo), p.watching(reader)
	// A file that is bad changes nothing; the next one takes demo's rights.
	if err := os.WriteFile(path, []byte("bindings: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(demo, "GET", 200)
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(demo, "GET", 403)
	ended(t, mine)
	expect(reader, "GET", 200)
	select {
	case _, open := <-other:
		if !open {
			t.Error("another client's watch has ended too")
		}
	default:
	}
}

// TestRotation: a token under a new key passes at once, the withdrawn key's are
// refused and its watches end.
func TestRotation(t *testing.T) {
	t.Parallel()
	i := newRotating(t)
	p := start(t, t.TempDir(), &issuer{Server: i.Server, key: i.keys["k1"]}, "--jwks-url="+i.URL)
	before := i.token("k1", "demo", "")
	watch := p.watching(before)
	i.rotate(t, "k2")
	p.token = i.token("k2", "demo", "")
	waittest.Until(t, "the new key is found", func() bool { // the set may have been fetched a moment ago
		code, _ := p.do("GET", eventsPath, "")
		return code == http.StatusOK
	})
	p.token = before
	if code, object := p.do("GET", eventsPath, ""); code != http.StatusUnauthorized {
		t.Errorf("a token of the withdrawn key: %d %v", code, object)
	}
	ended(t, watch)
}

// TestIssuersFile: several issuers, each with its own keys, claims and rules; a
// policy tells them apart.
func TestIssuersFile(t *testing.T) {
	t.Parallel()
	first, second := newRotating(t), newRotating(t)
	issuers := writeFile(t, "issuers.yaml", fmt.Sprintf(
		"- issuer: %s\n  jwksURL: %s\n  audiences: [other]\n  maxTokenLife: 24h\n  clientIDClaim: azp\n  claims: [groups]\n", second.URL, second.URL))
	rules := writeFile(t, "policy.yaml", fmt.Sprintf(
		"bindings:\n- {role: 'events:read', subjects: [{clientID: app}]}\n- {role: 'events:write', subjects: [{issuer: '%s', claim: groups, value: ops}]}\n", second.URL))
	p := start(t, t.TempDir(), &issuer{Server: first.Server, key: first.keys["k1"]},
		"--jwks-url="+first.URL, "--issuers-file="+issuers, "--policy-file="+rules)
	const header = `{"alg":"RS256","kid":"k1"}`
	day := fmt.Sprint(time.Now().Unix() + 80000)
	for name, c := range map[string]struct {
		token, method string
		want          int
	}{
		"first reads":                     {first.token("k1", "app", ""), "GET", 200},
		"first does not write":            {first.token("k1", "app", ""), "POST", 403},
		"second writes by its claim":      {second.signed("k1", header, second.payload("aud", `"other"`, "azp", `"app"`, "groups", `["x","ops"]`)), "POST", 422},
		"second, for a day":               {second.signed("k1", header, second.payload("aud", `"other"`, "exp", day, "groups", `"ops"`)), "POST", 422},
		"first, for a day":                {first.signed("k1", header, first.payload("exp", day, "sub", `"app"`)), "GET", 401},
		"second is not first's app":       {second.signed("k1", header, second.payload("aud", `"other"`, "azp", `"app"`)), "GET", 403},
		"second with another audience":    {second.signed("k1", header, second.payload()), "GET", 401},
		"first signs as second":           {first.signed("k1", header, second.payload("aud", `"other"`, "groups", `"ops"`)), "POST", 401},
		"second signs as first":           {second.signed("k1", header, first.payload("sub", `"app"`)), "GET", 401},
		"a group that first has not said": {first.signed("k1", header, first.payload("groups", `"ops"`)), "POST", 403},
	} {
		p.token = c.token
		if code, object := p.do(c.method, eventsPath, "{}"); code != c.want {
			t.Errorf("%s: %d %v, want %d", name, code, object, c.want)
		}
	}
}

func TestBadTrust(t *testing.T) {
	t.Parallel()
	policyFile := writeFile(t, "policy.yaml", "bindings: [{role: nobody, subjects: [{clientID: x}]}]")
	unknown := writeFile(t, "issuers.yaml", "- issuer: https://a.example\n  audience: x\n")
	scalar := writeFile(t, "issuers.yaml", "hello\n")
	unnamed := writeFile(t, "issuers.yaml", "- jwksURL: https://a.example\n")
	for args, want := range map[string]string{
		"--policy-file=" + policyFile:     `line 1: bindings.role: there is no role "nobody"`,
		"--policy-file=/nowhere":          "/nowhere",
		"--issuers-file=" + scalar:        "cannot unmarshal !!str `hello` into a list of issuers",
		"--issuers-file=" + unknown:       "line 2: field audience not found",
		"--issuers-file=" + unnamed:       "entry 1: issuer is missing",
		"--watch-after-expiry=-1s":        "--watch-after-expiry -1s is negative",
		"--jwks-url=http://keys.example/": "plain HTTP to another machine",
		"--issuers-file=/absent":          "/absent",
	} {
		log, err := os.CreateTemp(t.TempDir(), "log")
		if err != nil {
			t.Fatal(err)
		}
		all := append([]string{"--issuer=https://issuer.example", "--data-dir=" + t.TempDir(), "--listen-http=127.0.0.1:0", "--listen-admin="}, strings.Fields(args)...)
		err = run(t.Context(), all, &bytes.Buffer{}, log, nil)
		if cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestCanI(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "policy.yaml", "bindings:\n- {role: 'events:read', namespaces: [team-*], subjects: [{clientID: app}, {claim: groups, value: b}]}\n")
	cluster := writeFile(t, "issuers.yaml", "- {issuer: cluster, audiences: [eventsvc]}") // can be checked outside of it
	viewer := writeFile(t, "viewer.yaml", "bindings:\n- {role: 'events:read', subjects: [{issuer: cluster, clientID: 'system:serviceaccount:shop:viewer'}]}\n")
	clustered := writeFile(t, "clusters.yaml", "bindings:\n- {role: 'events:read', clusters: [east, ''], subjects: [{clientID: a}]}\n")
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"get", "yes: there is no policy file: every authenticated caller may do everything\n", 0},
		{"list -n team-a --client-id=app --claims=groups --policy-file=" + path, "yes: role \"events:read\", bound in line 2\n", 0},
		{"list -n team-a --claim=groups=a,b --policy-file=" + path, "yes: role \"events:read\", bound in line 2\n", 0},
		{"list -A --client-id=app --claims=groups --policy-file=" + path, "no: no rule of the policy allows this client to list across all namespaces", 1},
		{"list -A --scope=events:read --claims=groups --policy-file=" + path, "yes: the token's scope \"events:read\"\n", 0},
		{"get -n shop --client-id=system:serviceaccount:shop:viewer --token-issuer=cluster --issuer= --issuers-file=" + cluster + " --policy-file=" + viewer, "yes: role \"events:read\", bound in line 2\n", 0},
		{"get -A --cluster=east --client-id=a --policy-file=" + clustered, "yes: role \"events:read\", bound in line 2, for events of the clusters [\"\" \"east\"]\n", 0},
		{"get -A --cluster= --client-id=a --policy-file=" + clustered, "yes: ", 0},
		{"get -A --cluster=west --client-id=a --policy-file=" + clustered, "no: no rule allows this for events of the cluster \"west\", only these do for others: role", 1},
		{"get -A --client-id=a --policy-file=" + clustered, "yes: role \"events:read\", bound in line 2, for events of the clusters", 0},
		{"lists", "", 2},
		{"get --policy-file=/nowhere", "", 2},
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"can-i"}, strings.Fields(c.args)...), &out, os.Stderr, nil)
		if cli.ExitCode(err) != c.code || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("can-i %s: %v, %q", c.args, err, out.String())
		}
		if c.code == 1 && !errors.Is(err, errNo) {
			t.Errorf("can-i %s: %v", c.args, err)
		}
	}
}

// TestAuditLog: the running service keeps one, and has written everything when
// it has stopped.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	i, dir := newIssuer(t), t.TempDir()
	p := start(t, dir, i, "--audit=metadata")
	p.do("POST", eventsPath, newEvent("a"))
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(`"user":"demo"`)) || !bytes.Contains(data, []byte(`"verb":"create"`)) || bytes.Contains(data, []byte(p.token)) {
		t.Errorf("the log is %s", data)
	}
}

// TestManagementIsAudited: every request to the admin listener has an access
// line and an audit entry with the same id, whether it is allowed or not.
func TestManagementIsAudited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, newIssuer(t), "--audit=metadata")
	store, err := admin.NewRemote(dir, p.addrs["--listen-admin"])
	if err != nil {
		t.Fatal(err)
	}
	discard := func(uint64, int64) io.Writer { return io.Discard }
	_, imported := store.Import(t.Context(), nil)
	_, checked := store.Check(t.Context(), nil)
	_, compacted := store.Compact(t.Context(), false, nil)
	if err := errors.Join(store.Backup(t.Context(), discard), store.Export(t.Context(), 0, discard), imported, checked, compacted); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{{"GET", "/metrics", 200}, {"GET", "/livez", 200}, {"GET", "/nothing", 404}, {"POST", "/store/backup", 401}} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, p.url("--listen-admin")+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != c.want {
			t.Fatalf("%s: %v, %v", c.path, resp, err)
		}
		_ = resp.Body.Close()
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	type entry struct {
		ID        string
		RequestID string `json:"request_id"`
		Path      string
		Verb      string
		Code      int
		Allowed   bool
	}
	read := func(path string) map[string]entry {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]entry{}
		for line := range strings.Lines(string(data)) {
			var e entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			found[e.ID+e.RequestID] = e // one of them is there
		}
		return found
	}
	audited, logged, missing := read(filepath.Join(dir, "audit.log")), read(p.log), map[entry]bool{
		{Path: "/metrics", Code: 200}: true, {Path: "/livez", Code: 200}: true, {Path: "/nothing", Code: 404}: true,
		{Path: "/store/backup", Verb: "backup", Code: 401}: true,
	}
	for _, work := range []string{"backup", "check", "compact", "export", "import"} {
		missing[entry{Path: "/store/" + work, Verb: work, Code: 200, Allowed: true}] = true
	}
	for id, e := range audited {
		if line := logged[id]; line.Path != e.Path || line.Code != e.Code {
			t.Errorf("%+v has the access line %+v", e, line)
		}
		e.ID = ""
		delete(missing, e)
	}
	if len(missing) > 0 {
		t.Errorf("no entries for %+v, only %+v", missing, audited)
	}
}

// TestAuditFailure: while the audit file cannot be written, probes, log and
// metrics show it, and with --audit=required writes are refused.
func TestAuditFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode         string
		write, ready int
	}{{"metadata", http.StatusOK, http.StatusOK}, {"required", http.StatusServiceUnavailable, http.StatusInternalServerError}} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			blocked := filepath.Join(dir, "audit.log.7") // a directory, which no file can take the place of
			if err := os.Mkdir(blocked, 0o700); err != nil {
				t.Fatal(err)
			}
			for n := range auditFiles - 2 {
				if err := os.WriteFile(fmt.Sprintf("%s/audit.log.%d", dir, n+1), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := start(t, dir, newIssuer(t), "--audit="+c.mode, "--audit-max-bytes=8KiB")
			if code, object := p.do("POST", eventsPath, newEvent("a")); code != http.StatusCreated {
				t.Fatal(code, object)
			}
			probe := func() (int, string) {
				resp, err := http.Get(p.url("--listen-admin") + "/readyz?verbose")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return resp.StatusCode, string(body)
			}
			waittest.Until(t, "the audit log fails", func() bool {
				_, body := probe()
				return strings.Contains(body, "[-]audit failed")
			})
			if code, body := probe(); code != c.ready || !strings.Contains(body, blocked) {
				t.Errorf("readiness is %d %s", code, body)
			}
			if value := metric(t, p.url("--listen-admin"), "eventsvc_audit_failing"); value != "1" {
				t.Errorf("eventsvc_audit_failing is %q", value)
			}
			if code, object := p.do("PUT", eventsPath+"/a", newEvent("a")); code != c.write {
				t.Errorf("a write is answered with %d %v", code, object)
			}
			if code, object := p.do("GET", eventsPath+"/a", ""); code != http.StatusOK {
				t.Errorf("a read is answered with %d %v", code, object)
			}
			store, err := admin.NewRemote(dir, p.addrs["--listen-admin"])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Import(t.Context(), nil); (err != nil) != (c.mode == auditRequired) {
				t.Errorf("an import ends with %v", err)
			}
			if err := os.Remove(blocked); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "the audit log is written again", func() bool {
				_, body := probe()
				return strings.Contains(body, "[+]audit ok")
			})
			if code, object := p.do("PUT", eventsPath+"/a", newEvent("a")); code != http.StatusOK {
				t.Errorf("a write is answered with %d %v", code, object)
			}
			log, err := os.ReadFile(p.log)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(log, []byte("the audit log cannot be written")); n != 1 {
				t.Errorf("the log tells %d times that it fails", n)
			}
		})
	}
}
