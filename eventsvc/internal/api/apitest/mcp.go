package apitest

import (
	"encoding/json"
	"fmt"
	"testing"

	"tidings.example/eventsvc/internal/api"
)

// The revision of the protocol without state, and what its requests say of their client.
const (
	MCPModern = "2026-07-28"
	MCPMeta   = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

// WithMCP serves tools.
func WithMCP(c *api.Config) { c.MCP = true }

// Modern is a request of the revision without state.
func Modern(method, params string) string {
	if params != "" {
		params = "," + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":%s%s}}`, method, MCPMeta, params)
}

// Calling is a call of a tool as its params have it.
func Calling(tool, arguments string) string {
	return fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments)
}

// ModernHeaders are those of such a request. Name is that of the tool, if there is one.
func ModernHeaders(method, name string) []string {
	h := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", MCPModern, "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return h
}

// Tool calls a tool, and returns its text and whether it is an error.
func (w *World) Tool(caller, tool, arguments string) (text string, failed bool) {
	w.T.Helper()
	a := w.As(caller, "POST", "/mcp", Modern("tools/call", Calling(tool, arguments)), ModernHeaders("tools/call", tool)...).Must(200)
	return ToolText(w.T, a.Body)
}

// ToolText returns the text of a result.
func ToolText(t testing.TB, body []byte) (text string, failed bool) {
	t.Helper()
	var answer struct {
		Result *struct {
			Content []struct{ Type, Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Result == nil || len(answer.Result.Content) != 1 || answer.Result.Content[0].Type != "text" {
		t.Fatalf("no text of a tool: %v: %s", err, body)
	}
	return answer.Result.Content[0].Text, answer.Result.IsError
}
