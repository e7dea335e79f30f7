package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/shared/waittest"
)

// command runs the program, which must end with the exit code wanted, and
// returns what it printed.
func command(t *testing.T, want int, args ...string) string {
	t.Helper()
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := exitCode(run(t.Context(), args, &out, errs, nil))
	said, err := os.ReadFile(errs.Name())
	if err := errors.Join(err, errs.Close()); err != nil {
		t.Fatal(err)
	}
	if code != want {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, out.String(), said)
	}
	if want == 0 {
		return out.String()
	}
	return out.String() + string(said)
}

func decoded[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// items lists all events; with a revision as they were then.
func (p *process) items(revision uint64) []any {
	p.t.Helper()
	path := eventsPath
	if revision > 0 {
		path += "?resourceVersionMatch=Exact&resourceVersion=" + strconv.FormatUint(revision, 10)
	}
	code, list := p.do("GET", path, "")
	if code != http.StatusOK {
		p.t.Fatal(code, list)
	}
	items, _ := list["items"].([]any)
	return items
}

// load writes from many connections until it is ended.
func (p *process) load() (end func()) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				name := fmt.Sprintf("load-%d-%d", n, i%50)
				switch code, answer := p.do("POST", eventsPath, newEvent(name)); code {
				case http.StatusCreated:
				case http.StatusConflict:
					if i%3 == 0 {
						p.do("DELETE", eventsPath+"/"+name, "")
					} else {
						p.do("PATCH", eventsPath+"/"+name, fmt.Sprintf(`{"metadata":{"labels":{"i":"%d"}}}`, i))
					}
				default:
					p.t.Error(code, answer)
					return
				}
			}
		})
	}
	return func() { stop.Store(true); waittest.Join(p.t, &wg) }
}

// atRevision waits until so many revisions have been written.
func (p *process) atRevision(want int) {
	p.t.Helper()
	for rv := 0; rv < want; {
		_, list := p.do("GET", eventsPath+"?limit=1", "")
		rv, _ = strconv.Atoi(list["metadata"].(map[string]any)["resourceVersion"].(string))
	}
}

// R17: a backup that is taken through the running service, under load, is
// restored to exactly the state of one revision.
func TestBackupOfRunningService(t *testing.T) {
	t.Parallel()
	i, dir, copied := newIssuer(t), t.TempDir(), t.TempDir()
	p := start(t, dir, i)
	here := []string{"--data-dir=" + dir, "--listen-admin=" + p.addrs["--listen-admin"]}
	file := filepath.Join(copied, "events.tar")
	end := p.load()
	p.atRevision(300)
	result := decoded[admin.Written](t, command(t, 0, append([]string{"backup", "--json", file}, here...)...))
	export := decoded[admin.Written](t, command(t, 0, append([]string{"export", "--json", file + ".ndjson"}, here...)...))
	report := decoded[struct{ Records int64 }](t, command(t, 0, append([]string{"check", "--json"}, here...)...))
	command(t, 0, append([]string{"compact"}, here...)...)
	end()
	if report.Records < 300 || export.Revision < result.Revision || *export.Events < 10 {
		t.Errorf("checked %+v, exported %+v, backed up %+v", report, export, result)
	}
	want := p.items(result.Revision)
	if info, err := os.Stat(file); err != nil || info.Size() != result.Bytes || info.Mode().Perm() != 0o600 {
		t.Errorf("%+v, %v", info, err)
	}
	if said := command(t, 1, append([]string{"backup", file}, here...)...); !strings.Contains(said, "exists already") {
		t.Error(said)
	}

	restored := filepath.Join(copied, "data")
	command(t, 0, "restore", file, "--data-dir="+restored)
	if said := command(t, 1, "restore", file, "--data-dir="+restored); !strings.Contains(said, "not empty") {
		t.Error(said)
	}
	q := start(t, restored, i, "--retention=0")
	if diff := cmp.Diff(want, q.items(0)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(copied, "*.partial")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestAdminStoreAsksForTheSecret: a token for the API is not the secret, and the commands tell which service they
// asked.
func TestAdminStoreAsksForTheSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, newIssuer(t))
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.url("--listen-admin")+admin.Path+"backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a backup with a token for the API: %d", resp.StatusCode)
	}
	said := command(t, 1, "check", "--data-dir="+dir, "--listen-admin=127.0.0.1:1")
	if !strings.Contains(said, "--listen-admin 127.0.0.1:1") || !strings.Contains(said, "stop it") {
		t.Error(said)
	}
	other := start(t, t.TempDir(), newIssuer(t))
	if said := command(t, 1, "check", "--data-dir="+dir, "--listen-admin="+other.addrs["--listen-admin"]); !strings.Contains(said, "admin.token") {
		t.Error(said)
	}
}

// An export keeps what an event is, and importing it twice changes nothing;
// the next export goes on from its revision.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	i, dir, copied := newIssuer(t), t.TempDir(), t.TempDir()
	p, q := start(t, dir, i), start(t, copied, i)
	from := []string{"--data-dir=" + dir, "--listen-admin=" + p.addrs["--listen-admin"]}
	into := []string{"--data-dir=" + copied, "--listen-admin=" + q.addrs["--listen-admin"], "--json", "--apply-deletions"}
	for n := range 30 {
		p.do("POST", eventsPath, newEvent(fmt.Sprintf("e%02d", n)))
	}
	p.do("PATCH", eventsPath+"/e03", `{"metadata":{"labels":{"x":"y"}}}`)
	imported := func(file string, args []string, other ...bool) map[string]any {
		t.Helper()
		sum := decoded[map[string]any](t, command(t, 0, append([]string{"import", file}, args...)...))
		if _, bumped := sum["compactRevision"]; bumped != (len(other) > 0) {
			t.Errorf("revisions continue after %v", sum["compactRevision"])
		}
		for _, name := range []string{"compactRevision", "events", "from", "to", "beside"} {
			delete(sum, name)
		}
		return sum
	}
	sums := func(created, changed, deleted, unchanged float64) map[string]any {
		return map[string]any{"created": created, "changed": changed, "deleted": deleted, "unchanged": unchanged, "leftOut": 0.0}
	}
	compare := func(what string, want, got map[string]any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if diff := cmp.Diff(withoutVersions(p.items(0)), withoutVersions(q.items(0))); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	first := filepath.Join(t.TempDir(), "first")
	revision := decoded[admin.Written](t, command(t, 0, append([]string{"export", first, "--json"}, from...)...)).Revision
	compare("first", sums(30, 0, 0, 0), imported(first, into, true))
	// A client that comes here from there has to list again.
	known := fmt.Sprint(revision)
	if code, answer := q.do("GET", eventsPath+"?resourceVersionMatch=Exact&resourceVersion="+known, ""); code != http.StatusGone {
		t.Errorf("a revision of the other store is answered %d %v", code, answer)
	}
	before := q.items(0)
	compare("again", sums(0, 0, 0, 30), imported(first, into))
	if diff := cmp.Diff(before, q.items(0)); diff != "" { // not even the resourceVersions
		t.Error(diff)
	}

	p.do("DELETE", eventsPath+"/e00", "")
	p.do("DELETE", eventsPath+"/e01", "")
	p.do("POST", eventsPath, newEvent("e01")) // another of that name
	p.do("PATCH", eventsPath+"/e02", `{"metadata":{"labels":{"x":"y"}}}`)
	p.do("PATCH", eventsPath+"/e02", `{"metadata":{"labels":{"x":"z"}}}`)
	p.do("POST", eventsPath, newEvent("passing"))
	p.do("DELETE", eventsPath+"/passing", "")
	next := filepath.Join(t.TempDir(), "next")
	command(t, 0, append([]string{"export", next, fmt.Sprintf("--after=%d", revision)}, from...)...)
	compare("next", sums(1, 1, 1, 1), imported(next, into))
	compare("next again", sums(0, 0, 0, 4), imported(next, into))

	// The same on closed files, which an import may make.
	if err := errors.Join(p.stop(), q.stop()); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(t.TempDir(), "closed")
	command(t, 0, "export", closed, "--data-dir="+dir)
	fresh := []string{"--data-dir=" + t.TempDir(), "--json"}
	if diff := cmp.Diff(sums(29, 0, 0, 0), imported(closed, fresh, true)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(sums(0, 0, 0, 29), imported(closed, fresh)); diff != "" {
		t.Error(diff)
	}
	if said := command(t, 1, "export", "-", "--after=99999", "--data-dir="+dir); !strings.Contains(said, "yet to come") {
		t.Error(said)
	}
}

func withoutVersions(items []any) []any {
	for _, item := range items {
		delete(item.(map[string]any)["metadata"].(map[string]any), "resourceVersion")
	}
	return items
}

// Lines that cannot be imported are told, and the others are imported.
func TestImportLeavesOut(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "lines")
	event := func(name, uid, created string) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":%q,"namespace":"a","uid":%q,"creationTimestamp":%s},"eventTime":null}}`+"\n",
			name, uid, created)
	}
	lines := event("good", "1", `"2026-01-02T03:04:05Z"`) + event("no-uid", "", `"2026-01-02T03:04:05Z"`) + event("no-time", "1", "null") +
		event("a/b", "1", `"2026-01-02T03:04:05Z"`) + "no json\n" + `{"type":"ERROR","object":{}}` + "\n{broken}\n{\"kind\":\n" +
		event("twice", "new", `"2026-01-02T03:04:06Z"`) + event("twice", "old", `"2026-01-02T03:04:05Z"`)
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	said := command(t, 3, "import", file, "--data-dir="+dir)
	for _, want := range []string{
		"4 created", "3 left out", "lines: line 3: a/no-time: it has no time at all: give one with --time", "lines: line 4: a/a/b: metadata.name",
		"lines: line 10: not JSON", "lines: line 6: the watch ended with an error", "1 have a name that another event has", "--cluster NAME",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in:\n%s", want, said)
		}
	}
}

// Settings that cannot be, and files that are no store, are told with what to do.
func TestStoreCommandsRefuse(t *testing.T) {
	t.Parallel()
	empty, damaged := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(damaged, "store"), 0o700),
		os.WriteFile(filepath.Join(damaged, "store", "index.db"), []byte(strings.Repeat("garbage ", 5000)), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{2, []string{"backup", "x", "--data-dir=" + empty}, "holds no events"},
		{2, []string{"check", "--data-dir=" + empty}, "holds no events"},
		{2, []string{"backup", "-", "--json"}, "name a file"},
		{2, []string{"export", "-", "--json"}, "name a file"},
		{2, []string{"backup"}, "<file>"},
		{1, []string{"restore", filepath.Join(empty, "none")}, "name a file"},
		{1, []string{"restore", "main.go", "--data-dir=" + filepath.Join(empty, "new")}, "not a backup"},
		{3, []string{"check", "--data-dir=" + damaged}, "remove this file alone"},
		{1, []string{"compact", "--data-dir=" + damaged}, "remove this file alone"},
	} {
		if said := command(t, c.code, c.args...); !strings.Contains(said, c.says) {
			t.Errorf("%v: no %q in:\n%s", c.args, c.says, said)
		}
	}
}

// childArgs makes the test binary the program, which is to be killed.
const childArgs = "EVENTSVC_TEST_CHILD"

// TestChild is not a test of its own.
func TestChild(t *testing.T) {
	args := os.Getenv(childArgs)
	if args == "" {
		t.Skip("the program that TestKilledCommands kills")
	}
	if err := os.Unsetenv(childArgs); err != nil { // it is no setting
		t.Fatal(err)
	}
	if err := run(t.Context(), strings.Split(args, "\n"), os.Stdout, os.Stderr, nil); err != nil {
		t.Fatal(err)
	}
}

// Whenever a command is killed, nothing half-made is found afterwards, and the
// same command then does its work.
func TestKilledCommands(t *testing.T) {
	t.Parallel()
	source, work := t.TempDir(), t.TempDir()
	lines, archive := filepath.Join(work, "lines"), filepath.Join(work, "archive")
	var text strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&text, `{"type":"ADDED","object":{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e%d","namespace":"a","uid":"%d","creationTimestamp":"2026-01-02T03:04:05Z"},"eventTime":null,"note":"%0900d"}}`+"\n", n, n, n)
	}
	if err := os.WriteFile(lines, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, 0, "import", lines, "--data-dir="+source)
	command(t, 0, "backup", archive, "--data-dir="+source)
	for round := range 4 {
		after := time.Duration(5+15*round) * time.Millisecond
		dir := t.TempDir()
		restored, imported, file := filepath.Join(dir, "restored"), filepath.Join(dir, "imported"), filepath.Join(dir, "file")

		killAfter(t, after, "backup", file, "--data-dir="+source)
		if _, err := os.Stat(file); err == nil {
			command(t, 0, "restore", file, "--data-dir="+filepath.Join(dir, "whole"))
		} else {
			command(t, 0, "backup", file, "--data-dir="+source)
		}
		killAfter(t, after, "restore", archive, "--data-dir="+restored)
		if files, err := os.ReadDir(filepath.Join(restored, "store")); err != nil || len(files) == 0 { // it is made and locked before
			command(t, 0, "restore", archive, "--data-dir="+restored)
		}
		killAfter(t, after, "import", lines, "--data-dir="+imported)
		command(t, 0, "import", lines, "--data-dir="+imported)
		killAfter(t, after, "compact", "--data-dir="+imported)
		for _, d := range []string{source, restored, imported} {
			if report := decoded[struct{ Live int }](t, command(t, 0, "check", "--json", "--data-dir="+d)); report.Live != 2000 {
				t.Errorf("round %d: %s has %d events", round, d, report.Live)
			}
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*", "*.restoring")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

func killAfter(t *testing.T, after time.Duration, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(args, "\n"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
	err := cmd.Wait()
	kill.Stop()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || err != nil && status.Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %v", args, err)
	}
}

// R18: the files of a store are compressed by command, whether the service
// runs or not, and stay the same store.
func TestCompressCommand(t *testing.T) {
	t.Parallel()
	i, dir, other := newIssuer(t), t.TempDir(), t.TempDir()
	p := start(t, dir, i)
	end := p.load()
	p.atRevision(300)
	end()
	file := filepath.Join(other, "events.tar")
	command(t, 0, "backup", file, "--data-dir="+dir, "--listen-admin="+p.addrs["--listen-admin"])
	restored := filepath.Join(other, "restored") // a restore seals the file of the log
	command(t, 0, "restore", file, "--data-dir="+restored)
	here := []string{"--data-dir=" + restored}
	want := command(t, 0, append([]string{"export", "-"}, here...)...)
	convert := func(form string, compressed int) {
		t.Helper()
		result := decoded[admin.Compaction](t, command(t, 0, append([]string{"compact", "--json", form}, here...)...))
		if result.Compressed != compressed || result.Segments < 2 || result.Before < result.After == (compressed > 0) {
			t.Errorf("%s: %+v", form, result)
		}
		if got := command(t, 0, append([]string{"export", "-"}, here...)...); got != want {
			t.Errorf("%s: the export is another one", form)
		}
		command(t, 0, append([]string{"check"}, here...)...)
	}
	convert("--compress", 1)
	p = start(t, restored, i)
	here = append(here, "--listen-admin="+p.addrs["--listen-admin"])
	convert("--compress", 1)
}

// R13: what is damaged is dropped by command, if the service is stopped. Everything else is well afterwards.
func TestDropDamagedCommand(t *testing.T) {
	t.Parallel()
	i, dir, other := newIssuer(t), t.TempDir(), t.TempDir()
	p := start(t, dir, i)
	for _, name := range []string{"first", "needle", "last"} {
		if code, answer := p.do("POST", eventsPath, newEvent(name)); code != http.StatusCreated {
			t.Fatal(code, answer)
		}
	}
	admin := "--listen-admin=" + p.addrs["--listen-admin"]
	if said := command(t, 2, "check", "--drop-damaged", "--data-dir="+dir, admin); !strings.Contains(said, "stop the service") {
		t.Errorf("of a running service it says %s", said)
	}
	file, restored := filepath.Join(other, "events.tar"), filepath.Join(other, "restored")
	command(t, 0, "backup", file, "--data-dir="+dir, admin)
	command(t, 0, "restore", file, "--data-dir="+restored)
	logs, err := filepath.Glob(filepath.Join(restored, "store", "log-*.db"))
	for _, log := range logs {
		data, failed := os.ReadFile(log)
		err = errors.Join(err, failed, os.WriteFile(log, bytes.ReplaceAll(data, []byte("needle"), []byte("NEEDLE")), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	command(t, 3, "check", "--data-dir="+restored)
	if said := command(t, 3, "check", "--drop-damaged", "--data-dir="+restored); !strings.Contains(said, "dropped: event default/needle") {
		t.Errorf("dropping says %s", said)
	}
	command(t, 0, "check", "--data-dir="+restored)
	if said := command(t, 0, "export", "-", "--data-dir="+restored); strings.Count(said, `"ADDED"`) != 2 || strings.Contains(said, "needle") {
		t.Errorf("exported was %s", said)
	}
}

// TestLastBackup: the metric has when the running service last made a backup, also after a restart.
func TestLastBackup(t *testing.T) {
	t.Parallel()
	const name = "store_last_backup_timestamp_seconds"
	dir, i := t.TempDir(), newIssuer(t)
	p := start(t, dir, i)
	if at := p.metric(t, name); at != "0" {
		t.Errorf("%s is %s before the first backup", name, at)
	}
	before := time.Now().Truncate(time.Second)
	command(t, 0, "backup", filepath.Join(t.TempDir(), "backup.tar"), "--data-dir="+dir, "--listen-admin="+strings.TrimPrefix(p.url("--listen-admin"), "http://"))
	seconds := p.metric(t, name)
	if at, err := strconv.ParseFloat(seconds, 64); err != nil || at < float64(before.Unix()) || at > float64(time.Now().Unix()) {
		t.Errorf("%s is %s, %v", name, seconds, err)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if again := start(t, dir, i).metric(t, name); again != seconds {
		t.Errorf("%s is %s after a restart, was %s", name, again, seconds)
	}
}
