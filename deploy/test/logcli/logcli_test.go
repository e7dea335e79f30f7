package logcli_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// noon is when the events of these tests were observed.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// ways are how logcli reaches the service, with a token.
func (s *services) ways() map[string][]string {
	return map[string][]string{
		"HTTP":  {"LOKI_ADDR=" + s.plain, "LOKI_BEARER_TOKEN=" + s.token},
		"HTTPS": {"LOKI_ADDR=" + s.secure, "LOKI_CA_CERT_PATH=" + s.ca, "LOKI_USERNAME=any", "LOKI_PASSWORD=" + s.token},
	}
}

// logcli is one run of it.
func logcli(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "logcli"), append([]string{"--quiet", "--timezone=UTC"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// TestCommands compares what each command prints.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(t, "a", "BackOff", "Warning", "Back-off restarting failed container", noon.Add(time.Minute))
	s.create(t, "b", "Pulled", "Normal", "Container image pulled", noon.Add(2*time.Minute))
	s.create(t, "c", "Pulled", "Normal", "Container image pulled again", noon.Add(3*time.Minute))
	span := []string{"--from=2026-11-20T12:00:00Z", "--to=2026-11-20T12:10:00Z"}
	with := func(args ...string) []string { return append(args, span...) }
	pulled := `{"kind":"Pod","level":"info","namespace":"shop","node":"node-1","reason":"Pulled","reporter":"kubelet","service_name":"kubelet","type":"Normal"}`
	for name, env := range s.ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				args []string
				want string
			}{
				{with("labels"), "kind\nlevel\nnamespace\nnode\nreason\nreporter\nservice_name\ntype"},
				{with("labels", "reason"), "BackOff\nPulled"},
				{with("series", `{reason="Pulled"}`), `{kind="Pod", level="info", namespace="shop", node="node-1", reason="Pulled", reporter="kubelet", service_name="kubelet", type="Normal"}`},
				{with("query", "-o", "raw", `{namespace="shop"}`), "Container image pulled again\nContainer image pulled\nBack-off restarting failed container"},
				{with("query", "-o", "raw", "--forward", `{namespace="shop"}`), "Back-off restarting failed container\nContainer image pulled\nContainer image pulled again"},
				{with("query", "-o", "raw", "--batch=2", "--limit=3", `{namespace="shop"} | drop __error__`), "Container image pulled again\nContainer image pulled\nBack-off restarting failed container"},
				{with("query", "--include-common-labels", `{namespace="shop"} |= "Back-off" | keep kind, level`), `2026-11-20T12:01:00Z {kind="Pod", level="warning"} Back-off restarting failed container`},
				{with("query", "-o", "jsonl", "--include-common-labels", `{namespace="shop"} |~ "again$" | drop action, count, detected_level, host, name, uid`),
					`{"labels":` + pulled + `,"line":"Container image pulled again","timestamp":"2026-11-20T12:03:00Z"}`},
				{with("query", "--step=5m", `sum by (level) (count_over_time({namespace="shop"}[5m]))`),
					`[{"metric":{"level":"info"},"values":[[1795176300,"2"]]},{"metric":{"level":"warning"},"values":[[1795176300,"1"]]}]`},
				{[]string{"instant-query", "--now=2026-11-20T12:10:00Z", `topk(1, sum by (reason) (count_over_time({namespace="shop"}[10m])))`},
					`[{"metric":{"reason":"Pulled"},"value":[1795176600,"2"]}]`},
				{[]string{"instant-query", "--now=2026-11-20T12:10:00Z", `1 + 1`}, `[1795176600,"2"]`},
				{with("stats", `{namespace="shop"}`), "{\n  bytes: 3.1kB\n  chunks: 2\n  streams: 2\n  entries: 3\n}"},
				{with("volume", `{namespace="shop"}`), `[{"metric":{"namespace":"shop"},"value":[1795176600,"3"]}]`},
				{with("volume", "--targetLabels=reason", `{namespace="shop"}`), `[{"metric":{"reason":"Pulled"},"value":[1795176600,"2"]},{"metric":{"reason":"BackOff"},"value":[1795176600,"1"]}]`},
				{with("volume", "--targetLabels=reason,cluster", `{namespace="shop"}`), `[]`},
				{with("volume", "--aggregateByLabels", `{namespace="shop"}`), `[{"metric":{"kind":""},"value":[1795176600,"3"]},{"metric":{"level":""},"value":[1795176600,"3"]},` +
					`{"metric":{"namespace":""},"value":[1795176600,"3"]},{"metric":{"node":""},"value":[1795176600,"3"]},{"metric":{"reason":""},"value":[1795176600,"3"]},{"metric":{"reporter":""},"value":[1795176600,"3"]},` +
					`{"metric":{"service_name":""},"value":[1795176600,"3"]},{"metric":{"type":""},"value":[1795176600,"3"]}]`},
				{with("volume_range", "--step=5m", "--aggregateByLabels", "--targetLabels=reason", `{namespace="shop"}`), `[{"metric":{"reason":""},"values":[[1795176300,"3"]]}]`},
				{[]string{"query", "--from=2026-11-20T12:01:00Z", "--to=2026-11-20T12:01:01Z", "--step=250ms", `sum(count_over_time({namespace="shop"}[250ms]))`},
					`[{"metric":{},"values":[[1795176060.25,"1"]]}]`},
				{with("detected-fields", `{reason="Pulled"}`, "name"), "web-0"},
				{[]string{"query", "-o", "raw", `{namespace="shop"}`}, ""}, // nothing within the last hour
			} {
				out, err := logcli(t, env, c.args...).Output()
				if got := compact(string(out)); err != nil || got != c.want {
					t.Errorf("logcli %s: %v\n got %s\nwant %s", strings.Join(c.args, " "), err, got, c.want)
				}
			}
			out, err := logcli(t, env, with("query", `{namespace="shop"} | unwrap x`)...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "parse error at line 1, col 22: syntax error: unexpected unwrap, which is not supported here") {
				t.Errorf("%v: %s", err, out)
			}
			out, err = logcli(t, append(env, "LOKI_BEARER_TOKEN=", "LOKI_USERNAME=x", "LOKI_PASSWORD=bad"), with("labels")...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "Unauthorized") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// compact is output without the white space and the colours of logcli.
func compact(text string) string {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		b.WriteString(strings.Replace(line, `": `, `":`, 1))
	}
	return strings.ReplaceAll(b.String(), ", ", ",")
}

// TestTail: lines that are there, then those that come.
func TestTail(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(t, "old", "Started", "Normal", "was there", noon)
	for name, env := range s.ways() {
		t.Run(name, func(t *testing.T) {
			cmd := logcli(t, env, "query", "--tail", "-o", "raw", "--from=2026-11-20T00:00:00Z", `{namespace="shop"}`)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			next := func() string {
				if !lines.Scan() {
					t.Errorf("the tail has ended: %v", lines.Err())
				}
				return lines.Text()
			}
			for got := next(); got != "was there"; got = next() {
				if got != "comes" || t.Failed() { // that of the other way
					t.Fatal(got)
				}
			}
			s.create(t, "new-"+strings.ToLower(name), "Started", "Normal", "comes", noon.Add(-time.Minute))
			for got := next(); got != "comes"; got = next() {
				t.Fatal(got)
			}
			_ = cmd.Process.Signal(syscall.SIGINT)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
