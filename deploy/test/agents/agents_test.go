// Package agents_test runs the Go SDK of the Model Context Protocol, as it is, against a running eventsvc: in both eras
// of the protocol, over HTTP and through `eventsvc mcp`, with tokens that it gets by itself.
package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
	"tidings.example/shared/waittest"
)

// deadline bounds a start. It is long enough for a busy machine.
const deadline = time.Minute

// bin holds what TestMain builds: both services. root is the repository.
var bin, root string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	var err error
	if root, err = filepath.Abs("../../.."); err != nil {
		return 0, err
	}
	if bin, err = os.MkdirTemp("", "agents-bin-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	for _, name := range []string{"tokensvc", "eventsvc"} {
		if err := testenv.Build(filepath.Join(root, name), filepath.Join(bin, name)); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// services are a running pair.
type services struct{ tokens, events string } // base URLs

// clients are those of tokensvc. The resource stands for the URL of /mcp.
const clients = `clients:
- {client_id: demo, client_name: Demo, client_secret: "{noop}demo-secret", scope: events}
- {client_id: agent, client_name: Agent, client_secret: "{noop}agent-secret", scope: events, audience: [eventsvc, "RESOURCE"]}
- {client_id: tool, client_name: Tool, client_secret: "{noop}tool-secret", scope: events, audience: ["RESOURCE"]}
`

// start runs both services, eventsvc with further settings.
func start(t *testing.T, settings ...string) *services {
	t.Helper()
	tokens, events := porttest.Addr(t), porttest.Addr(t)
	registered := filepath.Join(t.TempDir(), "clients.yaml")
	if err := os.WriteFile(registered, []byte(strings.ReplaceAll(clients, "RESOURCE", "http://"+events+"/mcp")), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, "tokensvc", "TOKENSVC_LISTEN_HTTP="+tokens, "TOKENSVC_LISTEN_ADMIN="+porttest.Addr(t), "TOKENSVC_CLIENTS_FILE="+registered)
	launch(t, "eventsvc", append([]string{"EVENTSVC_LISTEN_HTTP=" + events, "EVENTSVC_LISTEN_ADMIN=" + porttest.Addr(t), "EVENTSVC_ISSUER=http://" + tokens, "EVENTSVC_DATA_DIR=" + t.TempDir(),
		"EVENTSVC_BASIC_TOKEN_URL=http://" + tokens + "/oauth2/token"}, settings...)...)
	return &services{"http://" + tokens, "http://" + events}
}

// launch starts a program, waits until it is ready, and stops it when the test ends.
func launch(t *testing.T, name string, env ...string) {
	t.Helper()
	log := &testenv.Output{}
	cmd := exec.Command(filepath.Join(bin, name))
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = append(os.Environ(), env...), log, log, t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, log)
		}
	})
	_, addr, _ := strings.Cut(env[1], "=") // the admin listener
	testenv.Eventually(t, name+" is ready", deadline, func() error {
		res, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", res.Status)
		}
		return nil
	})
}

// RoundTrip sends a request with a token of the demo client.
func (s *services) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.PostForm(s.tokens+"/oauth2/token", url.Values{"grant_type": {"client_credentials"}, "client_id": {"demo"}, "client_secret": {"demo-secret"}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(res.Body).Decode(&token); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token.AccessToken)
	return http.DefaultTransport.RoundTrip(r)
}

// password sends requests with a fixed header, as settings of assistants have it.
type password struct{ client, secret string }

func (p password) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth(p.client, p.secret)
	return http.DefaultTransport.RoundTrip(r)
}

// TestGoSDK: the SDK connects, lists the tools and calls each, with the newest revision of each era.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("demo-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for name, transport := range map[string]mcp.Transport{
			"HTTP":     &mcp.StreamableClientTransport{Endpoint: s.events + "/mcp", HTTPClient: &http.Client{Transport: s}},
			"password": &mcp.StreamableClientTransport{Endpoint: s.events + "/mcp", HTTPClient: &http.Client{Transport: password{"demo", "demo-secret"}}},
			"bridge": &mcp.CommandTransport{Command: exec.Command(filepath.Join(bin, "eventsvc"), "mcp", "--server="+s.events,
				"--token-url="+s.tokens+"/oauth2/token", "--client-id=demo", "--client-secret-file="+secret)},
		} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := waittest.Context(t)
				defer cancel()
				session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = session.Close() }()
				use(ctx, t, session, version)
			})
		}
	}
}

// use does with a session what an agent does.
func use(ctx context.Context, t *testing.T, session *mcp.ClientSession, version string) {
	t.Helper()
	if got := session.InitializeResult(); got == nil || got.ProtocolVersion != version || got.Instructions == "" || got.ServerInfo == nil || got.ServerInfo.Name != "tidings-eventsvc" {
		t.Errorf("%+v", got)
	}
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint || tool.InputSchema == nil {
			t.Errorf("%+v", tool)
		}
		arguments := map[string]any{"from": "-1h"}
		if tool.Name == "events_object" {
			arguments["uid"] = "none"
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name, Arguments: arguments})
		if err != nil || result.IsError || !strings.HasPrefix(text(result), "range ") || result.StructuredContent != nil {
			t.Errorf("%s: %v, %+v", tool.Name, err, result)
		}
	}
	if want := []string{"events_overview", "events_changes", "events_search", "events_groups", "events_object"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "events_search", Arguments: map[string]any{"limit": 1000}})
	if err != nil || !result.IsError || !strings.Contains(text(result), "argument limit") {
		t.Errorf("%v, %+v", err, result)
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "events_delete"}); err == nil || !strings.Contains(err.Error(), "no tool") {
		t.Errorf("a tool that is not: %v", err)
	}
}

func text(r *mcp.CallToolResult) string {
	if r == nil || len(r.Content) != 1 {
		return ""
	}
	content, _ := r.Content[0].(*mcp.TextContent)
	if content == nil {
		return ""
	}
	return content.Text
}
