package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// cable is a way to a server that can be cut.
type cable struct {
	net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// newCable returns a cable to the server of a DSN, and the DSN that leads through it.
func newCable(t *testing.T, dsn string) (*cable, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: l, to: u.Host}
	t.Cleanup(func() { _ = l.Close(); c.set(true) })
	go c.serve()
	u.Host = l.Addr().String()
	return c, u.String()
}

func (c *cable) serve() {
	for {
		from, err := c.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", c.to)
		c.mu.Lock()
		if c.cut || err != nil {
			_ = from.Close()
			c.mu.Unlock()
			continue
		}
		c.conns = append(c.conns, from, to)
		c.mu.Unlock()
		go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
		go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
	}
}

// set cuts the cable, or mends it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// migrated returns the DSN of a database with the tables.
func migrated(t *testing.T) string {
	t.Helper()
	dsn := pgtest.Start(t).Database(t)
	if err := run(t.Context(), []string{"database", "migrate", "--store-dsn", dsn}, io.Discard, os.Stderr, nil); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// TestReplicas: what one replica acknowledges, another one shows at once, and a watch moves between them.
func TestReplicas(t *testing.T) {
	t.Parallel()
	i, dsn := newIssuer(t), migrated(t)
	a := start(t, t.TempDir(), i, "--store-dsn="+dsn)
	b := start(t, t.TempDir(), i, "--store-dsn="+dsn)
	for _, name := range []string{"a", "b", "c"} {
		if code, object := a.do("POST", eventsPath, newEvent(name)); code != 201 {
			t.Fatal(code, object)
		}
		if code, object := b.do("GET", eventsPath+"/"+name, ""); code != 200 {
			t.Fatal(code, object)
		}
		if code, object := b.do("POST", eventsPath, newEvent(name)); code != 409 {
			t.Fatal(code, object)
		}
		if code, object := b.do("PATCH", eventsPath+"/"+name, `{"metadata":{"labels":{"x":"y"}}}`); code != 200 {
			t.Fatal(code, object)
		}
		if code, object := a.do("DELETE", eventsPath+"/"+name, ""); code != 200 {
			t.Fatal(code, object)
		}
		if code, object := a.do("POST", eventsPath, newEvent(name)); code != 201 {
			t.Fatal(code, object)
		}
		_, listed := a.do("GET", eventsPath, "")
		_, there := b.do("GET", eventsPath+"?resourceVersion="+listVersion(listed), "")
		if listVersion(there) != listVersion(listed) {
			t.Errorf("one replica shows %v, the other %v", listed["metadata"], there["metadata"])
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"database", "check", "--store-dsn", dsn}, &out, os.Stderr, nil); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
}

func listVersion(list map[string]any) string {
	v, _ := list["metadata"].(map[string]any)["resourceVersion"].(string)
	return v
}

// TestDryRunIsFresh: a dry run finds what a write would find, also on a replica that reads locally and whose copy lags
// behind what another one has acknowledged.
func TestDryRunIsFresh(t *testing.T) {
	t.Parallel()
	i, dsn := newIssuer(t), migrated(t)
	a := start(t, t.TempDir(), i, "--store-dsn="+dsn)
	b := start(t, t.TempDir(), i, "--store-dsn="+lagging(t, dsn), "--store-max-staleness=1h")
	for _, name := range []string{"put", "patched", "deleted", "version", "applied"} {
		if code, object := a.do("POST", eventsPath, newEvent(name)); code != 201 {
			t.Fatal(code, object)
		}
	}
	versions := map[string]any{}
	waittest.Until(t, "the other replica has the events", func() bool {
		_, list := b.do("GET", eventsPath, "")
		for _, item := range list["items"].([]any) {
			metadata := item.(map[string]any)["metadata"].(map[string]any)
			versions[metadata["name"].(string)] = metadata["resourceVersion"]
		}
		return len(versions) == 5
	})
	old := func(name string) string { return fmt.Sprintf(`"resourceVersion":%q`, versions[name]) }
	changed := `{"metadata":{"labels":{"x":"y"}}}`
	for _, c := range []struct {
		method, path, body string // that the first replica is sent
		dry, path2, body2  string // that the second one is sent as a dry run
		code               int
	}{
		{"POST", "", newEvent("new"), "POST", "", newEvent("new"), 409},
		{"PATCH", "/put", changed, "PUT", "/put", strings.Replace(newEvent("put"), `"name"`, old("put")+`,"name"`, 1), 409},
		{"PATCH", "/patched", changed, "PATCH", "/patched", `{"metadata":{` + old("patched") + `}}`, 409},
		{"PATCH", "/version", changed, "DELETE", "/version", `{"preconditions":{` + old("version") + `}}`, 409},
		{"DELETE", "/deleted", "", "DELETE", "/deleted", "", 404},
		{"DELETE", "/applied", "", "PATCH", "/applied", changed, 404},
		{"POST", "", newEvent("later"), "PUT", "/later", newEvent("later"), 200},
	} {
		arrive := pgtest.Lock(t, dsn, 1)
		if code, object := a.do(c.method, eventsPath+c.path, c.body); code >= 300 {
			t.Fatal(c.method, c.path, code, object)
		}
		asked, answered := b.metric(t, "store_database_head_seconds_count"), make(chan int, 1)
		go func() {
			code, _ := b.do(c.dry, eventsPath+c.path2+"?dryRun=All", c.body2)
			answered <- code
		}()
		waittest.Until(t, "the dry run asks how new the database is, or does without", func() bool {
			return len(answered) > 0 || b.metric(t, "store_database_head_seconds_count") != asked
		})
		arrive()
		if code := waittest.Within(t, answered); code != c.code {
			t.Errorf("after %s %s, a dry run of %s: %d, want %d", c.method, c.path, c.dry, code, c.code)
		}
	}
}

// lagging returns the DSN of a replica that lags: its role waits for a lock whenever it reads a record of the log.
func lagging(t *testing.T, dsn string) string {
	t.Helper()
	const role = "eventsvc_lagging"
	pgtest.Exec(t, dsn, `DO $$ BEGIN CREATE ROLE `+role+` LOGIN PASSWORD 'lag'; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	if err := run(t.Context(), []string{"database", "migrate", "--store-dsn", dsn, "--service-role", role}, io.Discard, os.Stderr, nil); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, dsn, `
		CREATE FUNCTION eventsvc.arrived() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN true; END';
		ALTER TABLE eventsvc.log ENABLE ROW LEVEL SECURITY;
		CREATE POLICY lag ON eventsvc.log FOR SELECT USING (eventsvc.arrived())`)
	u, _ := url.Parse(dsn)
	u.User = url.UserPassword(role, "lag")
	return u.String()
}

// TestDatabaseAway: while the database does not answer, writes are refused as not written, local reads go on and say
// how old they are, and everything works again when it is back. No log has the password.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	i, dsn := newIssuer(t), migrated(t)
	c, through := newCable(t, dsn)
	strict := start(t, t.TempDir(), i, "--store-dsn="+through)
	local := start(t, t.TempDir(), i, "--store-dsn="+through, "--store-max-staleness=1h")
	if code, object := strict.do("POST", eventsPath, newEvent("before")); code != 201 {
		t.Fatal(code, object)
	}
	waittest.Until(t, "the other replica has it", func() bool { code, _ := local.do("GET", eventsPath+"/before", ""); return code == 200 })

	c.set(true)
	waittest.Until(t, "the replica notices", func() bool { return strict.healthcheck(0) != nil })
	for _, p := range []*process{strict, local} {
		answer := p.answer("POST", eventsPath, newEvent("refused"))
		if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
			t.Errorf("a write: %d, Retry-After %q", answer.StatusCode, answer.Header.Get("Retry-After"))
		}
	}
	if code, object := strict.do("GET", eventsPath+"/before", ""); code != 503 {
		t.Errorf("a linearizable read: %d %v", code, object)
	}
	if answer := local.answer("GET", eventsPath+"/before", ""); answer.StatusCode != 200 || answer.Header.Get("Age") == "" {
		t.Errorf("a local read: %d, Age %q", answer.StatusCode, answer.Header.Get("Age"))
	}
	if err := local.healthcheck(0); err != nil {
		t.Errorf("the replica that reads locally: %v", err)
	}

	c.set(false)
	waittest.Until(t, "writes work again", func() bool { code, _ := strict.do("POST", eventsPath, newEvent("after")); return code == 201 })
	waittest.Until(t, "the replica is ready again", func() bool { return strict.healthcheck(0) == nil })
	_, list := strict.do("GET", eventsPath, "")
	if items := list["items"].([]any); len(items) != 2 {
		t.Errorf("%d events, want those that were acknowledged", len(items))
	}
	u, _ := url.Parse(dsn)
	password, _ := u.User.Password()
	for _, p := range []*process{strict, local} {
		log, err := os.ReadFile(p.log)
		if err != nil || bytes.Contains(log, []byte(password)) {
			t.Errorf("the log has the password, or %v", err)
		}
	}
}

// answer is do for those who look at the headers.
func (p *process) answer(method, path, body string) *http.Response {
	p.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, p.url("--listen-http")+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

// TestOneRole: a data directory is either that of a store or a copy, whatever command opens it.
func TestOneRole(t *testing.T) {
	t.Parallel()
	i, dsn, dir := newIssuer(t), migrated(t), t.TempDir()
	p := start(t, dir, i, "--store-dsn="+dsn)
	p.do("POST", eventsPath, newEvent("a"))
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	export := dir + "/export"
	for _, step := range []struct {
		args  []string
		fails string
	}{
		{[]string{"--issuer=" + i.URL, "--data-dir=" + dir, "--listen-http=127.0.0.1:0"}, "holds the copy of a database"},
		{[]string{"export", export, "--data-dir=" + dir}, ""},
		{[]string{"check", "--data-dir=" + dir}, ""},
		{[]string{"import", export, "--data-dir=" + dir}, "holds the copy of a database"},
	} {
		err := run(t.Context(), step.args, io.Discard, os.Stderr, nil)
		if (err != nil) != (step.fails != "") || err != nil && !strings.Contains(err.Error(), step.fails) {
			t.Errorf("%v: %v", step.args, err)
		}
	}
}

// TestMoveBetweenEngines: exports and imports move all events to the other engine and back, while the old service runs,
// and then what has changed meanwhile.
func TestMoveBetweenEngines(t *testing.T) {
	t.Parallel()
	i, dirs := newIssuer(t), []string{t.TempDir(), t.TempDir(), t.TempDir()}
	services := []*process{
		start(t, dirs[0], i),
		start(t, dirs[1], i, "--store-dsn="+migrated(t)),
		start(t, dirs[2], i),
	}
	command := func(at int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		args = append(args, "--data-dir="+dirs[at], "--listen-admin="+services[at].addrs["--listen-admin"])
		if err := run(t.Context(), args, &out, os.Stderr, nil); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	for n := range 40 {
		services[0].do("POST", eventsPath, newEvent(fmt.Sprint("e", n)))
	}
	for from := range 2 {
		all, later := dirs[from]+"/all", dirs[from]+"/later"
		command(from, "export", all)
		command(from+1, "import", cutOff(t, all)) // as an import that was interrupted
		if command(from, "digest") == command(from+1, "digest") {
			t.Error("the digest of a part is that of the whole")
		}
		if out := command(from+1, "import", all); strings.Contains(out, " 0 unchanged") {
			t.Errorf("the second import says %q", out)
		}
		services[from].do("POST", eventsPath, newEvent(fmt.Sprint("later", from)))
		services[from].do("PATCH", eventsPath+"/e1", fmt.Sprintf(`{"metadata":{"labels":{"changed":"in%d"}}}`, from))
		services[from].do("DELETE", eventsPath+fmt.Sprint("/e", 2+from), "")
		command(from, "export", later, "--after="+lastRevision(t, all))
		for _, said := range []string{"1 created, 1 changed, 1 deleted", "0 created, 0 changed, 0 deleted"} { // repeated, nothing changes
			if out := command(from+1, "import", later, "--apply-deletions"); !strings.Contains(out, said) {
				t.Errorf("import says %q, want %q", out, said)
			}
		}
		if old, new := command(from, "digest"), command(from+1, "digest"); old != new {
			t.Errorf("the digests are %q and %q", old, new)
		}
		if diff := cmp.Diff(contents(services[from]), contents(services[from+1])); diff != "" {
			t.Errorf("from %d to %d: %s", from, from+1, diff)
		}
	}
}

// TestBackupOfReplica: the backup of a replica restores to a store of the other engine that has the same events.
func TestBackupOfReplica(t *testing.T) {
	t.Parallel()
	i, dir, data := newIssuer(t), t.TempDir(), t.TempDir()
	replica := start(t, data, i, "--store-dsn="+migrated(t))
	for n := range 20 {
		replica.do("POST", eventsPath, newEvent(fmt.Sprint("e", n)))
	}
	_, listed := replica.do("GET", eventsPath, "")
	replica.do("PATCH", eventsPath+"/e1", `{"metadata":{"labels":{"changed":"later"}}}`)
	replica.do("DELETE", eventsPath+"/e2", "")
	file, restored := filepath.Join(dir, "backup"), filepath.Join(dir, "restored")
	command(t, 0, "backup", file, "--data-dir="+data, "--listen-admin="+replica.addrs["--listen-admin"])
	command(t, 0, "restore", file, "--data-dir="+restored)
	own := start(t, restored, i)
	if diff := cmp.Diff(contents(replica), contents(own)); diff != "" {
		t.Error(diff)
	}
	if code, gone := own.do("GET", eventsPath+"?resourceVersionMatch=Exact&limit=100&resourceVersion="+listVersion(listed), ""); code != 410 {
		t.Errorf("a state before the restore: %d %v; clients have to list again", code, gone)
	}
}

// cutOff returns a file with the first half of the lines of another one.
func cutOff(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	half := path + ".half"
	if err := os.WriteFile(half, bytes.Join(lines[:len(lines)/2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return half
}

// lastRevision returns the revision in the bookmark at the end of an export.
func lastRevision(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var bookmark struct {
		Object struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		} `json:"object"`
	}
	if err := json.Unmarshal(lines[len(lines)-1], &bookmark); err != nil {
		t.Fatal(err)
	}
	return bookmark.Object.Metadata.ResourceVersion
}

// contents returns all events of a service without their resourceVersion, which is the store's.
func contents(p *process) (all []any) {
	p.t.Helper()
	_, list := p.do("GET", eventsPath, "")
	for _, item := range list["items"].([]any) {
		delete(item.(map[string]any)["metadata"].(map[string]any), "resourceVersion")
		all = append(all, item)
	}
	return all
}
