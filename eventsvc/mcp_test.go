package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/ctl"
	"tidings.example/shared/cli"
	"tidings.example/shared/waittest"
)

// bridge runs eventsvc mcp between pipes.
type bridge struct {
	t       *testing.T
	in      io.WriteCloser
	answers chan map[string]any
	ended   chan error
	stderr  string
}

func startBridge(t *testing.T, args ...string) *bridge {
	t.Helper()
	var commands struct{ ctl.Commands }
	_, err := cli.Parse("eventsvc", "EVENTSVC", "", &commands, append([]string{"mcp"}, args...), io.Discard, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stderr.Close() })
	read, in := io.Pipe()
	out, write := io.Pipe()
	b := &bridge{t: t, in: in, answers: make(chan map[string]any, 100), ended: make(chan error, 1), stderr: stderr.Name()}
	go func() {
		err := commands.MCP.Run(t.Context(), ctl.IO{In: read, Out: write, Err: stderr})
		_ = write.Close()
		b.ended <- err
	}()
	go func() {
		defer close(b.answers)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var answer map[string]any
			if err := json.Unmarshal(lines.Bytes(), &answer); err != nil || answer["jsonrpc"] != "2.0" {
				t.Errorf("no message: %q", lines.Text())
			}
			b.answers <- answer
		}
	}()
	return b
}

func (b *bridge) send(line string) {
	b.t.Helper()
	if _, err := io.WriteString(b.in, line+"\n"); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bridge) answer() map[string]any {
	b.t.Helper()
	return waittest.Within(b.t, b.answers)
}

// end closes the input, and expects that the command ends.
func (b *bridge) end() {
	b.t.Helper()
	_ = b.in.Close()
	if err := waittest.Within(b.t, b.ended); err != nil {
		b.t.Error(err)
	}
	if answer, more := <-b.answers; more {
		b.t.Errorf("one answer more: %v", answer)
	}
}

const bridgeMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// TestBridge: a program that speaks over pipes asks a service, in both eras, with the token that there is then.
func TestBridge(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := start(t, t.TempDir(), i)
	token := file(t, i.token(t, nil))
	b := startBridge(t, "--server="+p.url("--listen-http"), "--token-file="+token)
	b.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if version := b.answer()["result"].(map[string]any)["protocolVersion"]; version != "2025-11-25" {
		t.Errorf("version %v", version)
	}
	b.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	b.send(`{"jsonrpc":"2.0","id":"two","method":"tools/list"}`)
	if answer := b.answer(); answer["id"] != "two" || len(answer["result"].(map[string]any)["tools"].([]any)) != 5 {
		t.Errorf("%v", answer)
	}
	b.send("")
	b.send(`{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{` + bridgeMeta + `}}`)
	if answer := b.answer(); answer["id"] != 3.0 || answer["result"].(map[string]any)["resultType"] != "complete" {
		t.Errorf("%v", answer)
	}
	for _, good := range []bool{true, false, true} {
		content := "bad"
		if good {
			content = i.token(t, nil)
		}
		if err := os.WriteFile(token, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		b.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{` + bridgeMeta + `,"name":"events_overview","arguments":{}}}`)
		answer := b.answer()
		result, _ := answer["result"].(map[string]any)
		problem, _ := answer["error"].(map[string]any)
		if strings.HasPrefix(fmt.Sprint(result["content"]), "[map[text:range ") != good || (problem["code"] == 401.0) == good {
			t.Fatalf("good token: %v: %v", good, answer)
		}
	}
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{` + bridgeMeta + `,"name":"ä ","arguments":{}}}`: "-32602",
		`{"jsonrpc":"2.0","id":5,"method":"resources/list","params":{` + bridgeMeta + `}}`:                        "-32601",
		`{"jsonrpc":"2.0","id":5,"method":"ping","params":"` + strings.Repeat("x", 70_000) + `"}`:                 "413",
		`{"jsonrpc":"2.0","id":5,` + strings.Repeat(" ", 1<<20) + `"method":"ping"}`:                              "-32600",
		`{"jsonrpc":"2.0","id":5,"method":"ping"`:                                                                 "-32700",
		`[{"jsonrpc":"2.0","id":5,"method":"ping"}]`:                                                              "-32600",
	} {
		b.send(line)
		problem, _ := b.answer()["error"].(map[string]any)
		if fmt.Sprint(problem["code"]) != want {
			t.Errorf("%.60s: %v, want %s", line, problem, want)
		}
	}
	b.end()
}

// TestBridgeWithoutAnswer: what cannot be answered is an error with the id of the request, and says what to do.
func TestBridgeWithoutAnswer(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "<html>\x1b[2J")
	}))
	defer server.Close()
	b := startBridge(t, "--server="+server.URL, "--token=s3cret")
	for code, hint := range map[int64]string{401: "give a token of an issuer that it trusts", 404: "check --server", 302: "", 200: "", 502: ""} {
		status.Store(code)
		b.send(`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
		answer := b.answer()
		problem, _ := answer["error"].(map[string]any)
		if text := fmt.Sprint(problem["message"]); answer["id"] != "x" || problem == nil || !strings.Contains(text, hint) || strings.Contains(text, "\x1b") {
			t.Errorf("%d: %v", code, answer)
		}
	}
	server.Close()
	b.send(`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
	if text := fmt.Sprint(b.answer()["error"]); !strings.Contains(text, "no answer from ") || !strings.Contains(text, "is it running") {
		t.Error(text)
	}
	b.end()
	said, err := os.ReadFile(b.stderr)
	if err != nil || bytes.Count(said, []byte("\n")) != 6 || bytes.Contains(said, []byte("s3cret")) {
		t.Errorf("%v: %s", err, said)
	}
}

// TestBridgeCancels: a request that is cancelled ends at the server and gets no answer; one that the input's end leaves
// does.
func TestBridgeCancels(t *testing.T) {
	t.Parallel()
	begun, left, release := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		begun <- struct{}{}
		if bytes.Contains(body, []byte(`"id":1`)) {
			<-r.Context().Done()
			close(left)
			return
		}
		<-release
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":2,"result":{}}`)
	}))
	defer server.Close()
	b := startBridge(t, "--server="+server.URL)
	b.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	waittest.Within(t, begun)
	b.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	waittest.Within(t, left)
	b.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	waittest.Within(t, begun)
	_ = b.in.Close()
	close(release)
	if answer := b.answer(); answer["id"] != 2.0 {
		t.Errorf("%v", answer)
	}
	b.end()
}
