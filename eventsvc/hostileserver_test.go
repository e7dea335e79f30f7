package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// evil has what a terminal acts on: a title, colours, 8-bit controls, a reversal, a line that looks like ours.
const evil = `\u001b]0;owned\u0007\u001b[31m\u009b2J\u202e\u200b\u007f\neventsvc: all is well`

// TestHostileServers: nothing that a server, a token endpoint or a program for tokens says reaches the terminal as a
// control character, whatever the command and the form of its output.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	raw := strings.NewReplacer(`\u001b`, "\x1b", `\u0007`, "\a", `\u009b`, "\u009b", `\u202e`, "\u202e", `\u200b`, "\u200b", `\u007f`, "\x7f", `\n`, "\n").Replace(evil)
	half := strings.ReplaceAll(raw, "\n", " ") // may stand in a JSON string as it is, but for the escapes
	half = strings.NewReplacer("\x1b", "", "\a", "").Replace(half) + "\x9b"
	event := fmt.Sprintf(`{"metadata":{"name":"a%[1]s","namespace":"b%[1]s%[2]s","resourceVersion":"7","uid":"u"},"eventTime":"2026-01-02T03:04:05.000006Z",`+
		`"type":"%[1]s","reason":"%[1]s%[2]s","note":"%[1]s%[2]s","regarding":{"kind":"%[1]s","name":"%[1]s"},"reportingController":"%[1]s"}`, evil, half)
	answers := map[string]func(w http.ResponseWriter, r *http.Request){
		"refused": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind":"Status","status":"Failure","code":403,"reason":"%[1]s","message":"%[1]s%[2]s"}`, evil, half)
		},
		"text": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, raw+"\x9b2J")
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, raw) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/%1b%5b31m%0a%c2%9b", http.StatusFound)
		},
		"status line": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 400 \x1b[31m\u009b2J\r\nContent-Length: 0\r\n\r\n")
				_ = conn.Close()
			}
		},
		"events": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Warning", "299 - \"\u009b31m\u202e\"")
			switch {
			case strings.HasPrefix(r.URL.Path, "/query/"):
				fmt.Fprintf(w, `{"revision":7,"range":{"from":"2026-01-01T00:00:00Z","to":"2026-01-03T00:00:00Z"},"partial":true,"partialReason":"%[1]s%[2]s","namespaces":["%[1]s"],"items":[%[3]s]}`, evil, half, event)
			case r.Method == http.MethodPost:
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, event)
			case r.URL.Query().Has("watch"):
				fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n"+`{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":400,"message":"%s"}}`+"\n", event, evil)
			default:
				fmt.Fprintf(w, `{"kind":"EventList","metadata":{"resourceVersion":"7"},"items":[%s]}`, event)
			}
		},
	}
	commands := [][]string{
		{"get"}, {"get", "-o", "json"}, {"get", "-o", "ndjson"}, {"get", "--since", "1h"}, {"query"}, {"query", "-o", "json"}, {"query", "-o", "wide"},
		{"record", "--reason", "R", "--action", "A", "--note", "n", "--timeout", "1ms"}, {"record", "--reason", "R", "--action", "A", "--note", "n", "--timeout", "1ms", "-o", "json"},
		{"tail", "--since", "999h", "--wait-for", "reason=never", "--timeout", "1s"}, {"tail", "--since", "999h", "--wait-for", "reason=never", "--timeout", "1s", "-o", "ndjson"},
	}
	for name, answer := range answers {
		server := httptest.NewServer(http.HandlerFunc(answer))
		t.Cleanup(server.Close)
		for _, command := range commands {
			t.Run(name+"/"+strings.Join(command[:min(len(command), 3)], " "), func(t *testing.T) {
				t.Parallel()
				harmless(t, append(command, "--server", server.URL)...)
			})
		}
		t.Run(name+"/token endpoint", func(t *testing.T) {
			t.Parallel()
			harmless(t, "get", "--server", server.URL, "--token-url", server.URL, "--client-id", "a", "--client-secret-file", file(t, "s"))
		})
		if name == "refused" || name == "text" || name == "status line" {
			t.Run(name+"/healthcheck", func(t *testing.T) {
				t.Parallel()
				harmless(t, "healthcheck", "--listen-admin", strings.TrimPrefix(server.URL, "http://"))
			})
		}
	}
	t.Run("program for tokens", func(t *testing.T) {
		t.Parallel()
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '\\033[31m\\302\\233\\neventsvc: fine' >&2\nexit 3\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if printed := harmless(t, "get", "--server", "http://127.0.0.1:1", "--token-command", program); strings.Contains(printed, "\neventsvc: fine") {
			t.Errorf("a line of the program is taken for ours: %q", printed)
		}
	})
}

// harmless runs a command, and returns what it has printed, which must have no control characters.
func harmless(t *testing.T, args ...string) string {
	t.Helper()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	var stdout bytes.Buffer
	failed := run(t.Context(), args, &stdout, stderr, nil)
	messages, err := os.ReadFile(stderr.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{stdout.String(), string(messages)} {
		if i := strings.IndexFunc(printed, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(printed) {
			t.Errorf("%q prints %q (%v)", args, printed, failed)
		}
	}
	if stdout.Len()+len(messages) == 0 {
		t.Errorf("%q prints nothing (%v)", args, failed)
	}
	return string(messages)
}
