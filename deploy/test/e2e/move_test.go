package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidings.example/shared/pgtest"
	"tidings.example/shared/porttest"
)

// TestMove runs the commands of the page about replicas that move all events to the other engine, and then back, while
// clients write until the last step.
func TestMove(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "deploy/docs/how-to/replicas.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Move between the engines")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks, want those of the copy, the changes and the last step", len(blocks))
	}
	dsn := pgtest.Start(t).Database(t)
	if out, err := exec.Command(filepath.Join(bin, "eventsvc"), "database", "migrate", "--store-dsn", dsn).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := startLocal(t)
	type place struct{ url, dir, admin string }
	places := []place{{w.events, filepath.Dir(filepath.Dir(w.ca)), strings.TrimPrefix(w.probes[1], "http://")}}
	for _, env := range [][]string{{"EVENTSVC_STORE_DSN=" + dsn}, nil} {
		p := place{porttest.Addr(t), t.TempDir(), porttest.Addr(t)}
		s := &process{name: "eventsvc", env: append(env, "EVENTSVC_ISSUER="+w.tokens, "EVENTSVC_LISTEN_HTTP="+p.url, "EVENTSVC_LISTEN_ADMIN="+p.admin, "EVENTSVC_DATA_DIR="+p.dir)}
		s.launch(t).waitReady(t)
		p.url = "http://" + p.url
		places = append(places, p)
	}
	for i, old := range places[:2] {
		from := *w
		from.events = old.url
		writer, stop := startWriter(t, &from, "moved")
		writer.more(t, 100)
		dir := t.TempDir()
		run := func(script string) string {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", strings.NewReplacer("/var/lib/old", old.dir, "127.0.0.1:8081", old.admin,
				"/var/lib/new", places[i+1].dir, "127.0.0.1:8181", places[i+1].admin).Replace(script))
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return string(out)
		}
		for _, block := range blocks[:2] {
			run(block[1])
			writer.more(t, 50)
		}
		names, stopped := stop(), time.Now()
		lines := strings.Split(strings.TrimSpace(run(blocks[2][1])), "\n")
		t.Logf("%d events are moved; the last step took %.1f s", len(names), time.Since(stopped).Seconds())
		if n := len(lines); n < 2 || lines[n-1] != lines[n-2] || !strings.Contains(lines[n-1], " events, digest ") {
			t.Errorf("the stores differ: %q", lines)
		}
	}
}
