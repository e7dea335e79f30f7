package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/api"
)

const (
	mcpModern = "2026-07-28"
	mcpMeta   = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

// withMCP serves tools.
func withMCP(c *api.Config) { c.MCP = true }

// modern is a request of the revision without state.
func modern(method, params string) string {
	if params != "" {
		params = "," + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":%s%s}}`, method, mcpMeta, params)
}

// calling is a call of a tool as its params have it.
func calling(tool, arguments string) string {
	return fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments)
}

// modernHeaders are those of such a request. Name is that of the tool, if there is one.
func modernHeaders(method, name string) []string {
	h := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", mcpModern, "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return h
}

// tool calls a tool, and returns its text and whether it is an error.
func (w *world) tool(caller, tool, arguments string) (text string, failed bool) {
	w.t.Helper()
	a := w.as(caller, "POST", "/mcp", modern("tools/call", calling(tool, arguments)), modernHeaders("tools/call", tool)...).must(200)
	return toolText(w.t, a.body)
}

// toolText returns the text of a result.
func toolText(t testing.TB, body []byte) (text string, failed bool) {
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

// TestMCPProtocol: raw requests, as the suite of the protocol makes them, and what they get.
func TestMCPProtocol(t *testing.T) {
	t.Parallel()
	w := storyWorld(t, withMCP)
	plain := []string{"Content-Type", "application/json"}
	of := func(version string) []string { return append([]string{"Mcp-Protocol-Version", version}, plain...) }
	change := func(headers []string, pairs ...string) []string { return append(headers, pairs...) }
	discover, list, call := modern("server/discover", ""), modern("tools/list", ""), modern("tools/call", calling("events_search", "{}"))
	onDiscover, onCall := modernHeaders("server/discover", ""), modernHeaders("tools/call", "events_search")
	without := func(member string) string {
		meta := map[string]any{}
		_ = json.Unmarshal([]byte(mcpMeta), &meta)
		maps.DeleteFunc(meta, func(name string, _ any) bool { return strings.HasSuffix(name, member) })
		b, _ := json.Marshal(meta)
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":102,"method":"server/discover","params":{"_meta":%s}}`, b)
	}
	old := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":%q,"params":%s}`, method, params)
	}
	encoded := "=?base64?" + base64.StdEncoding.EncodeToString([]byte("events_search")) + "?="
	for name, c := range map[string]struct {
		method, body string
		headers      []string
		status, code int    // of HTTP, and of JSON-RPC; 0: a result
		id           string // of the answer; empty: none
		has          string // a part of the body
	}{
		"GET":                 {"GET", "", plain, 405, 405, "", ""},
		"DELETE":              {"DELETE", "", plain, 405, 405, "", ""},
		"OPTIONS":             {"OPTIONS", "", plain, 405, 405, "", ""},
		"PUT":                 {"PUT", list, plain, 405, 405, "", ""},
		"no content type":     {"POST", discover, onDiscover[2:], 415, 415, "", "Content-Type"},
		"a form":              {"POST", discover, change(onDiscover, "Content-Type", "application/x-www-form-urlencoded"), 415, 415, "", ""},
		"with charset":        {"POST", discover, change(onDiscover, "Content-Type", "Application/JSON; charset=utf-8"), 200, 0, "1", ""},
		"accepts events only": {"POST", discover, change(onDiscover, "Accept", "text/event-stream"), 406, 406, "", "Accept"},
		"accepts anything":    {"POST", discover, change(onDiscover, "Accept", "*/*"), 200, 0, "1", ""},
		"64 KiB":              {"POST", discover + strings.Repeat(" ", 64<<10-len(discover)), onDiscover, 200, 0, "1", ""},
		"more than 64 KiB":    {"POST", discover + strings.Repeat(" ", 64<<10-len(discover)+1), onDiscover, 413, 413, "", ""},
		"no body":             {"POST", "", plain, 400, -32700, "", ""},
		"no JSON":             {"POST", "{", plain, 400, -32700, "", ""},
		"two values":          {"POST", discover + discover, plain, 400, -32700, "", ""},
		"no UTF-8":            {"POST", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", plain, 400, -32700, "", ""},
		"deep":                {"POST", strings.Repeat("[", 60000), plain, 400, -32700, "", ""},
		"a batch":             {"POST", "[" + discover + "]", onDiscover, 400, -32600, "", ""},
		"an empty batch":      {"POST", "[]", onDiscover, 400, -32600, "", ""},
		"a response":          {"POST", `{"jsonrpc":"2.0","id":7,"result":{}}`, plain, 400, -32600, "7", ""},
		"an error":            {"POST", `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`, plain, 400, -32600, "7", ""},
		"id null":             {"POST", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, plain, 400, -32600, "", ""},
		"id with a fraction":  {"POST", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, plain, 400, -32600, "", ""},
		"no id":               {"POST", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"events_search"}}`, plain, 400, -32600, "", ""},
		"other jsonrpc":       {"POST", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, plain, 400, -32600, "1", ""},
		"a name twice":        {"POST", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, plain, 400, -32600, "", "twice"},
		"a name in capitals":  {"POST", `{"jsonrpc":"2.0","id":1,"Method":"ping"}`, plain, 400, -32600, "1", ""},
		"params are a list":   {"POST", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, plain, 400, -32602, "1", ""},
		"a notification":      {"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, plain, 202, 0, "", ""},

		"discover":                   {"POST", discover, onDiscover, 200, 0, "1", `"resultType":"complete"`},
		"discover without _meta":     {"POST", `{"jsonrpc":"2.0","id":101,"method":"server/discover","params":{}}`, onDiscover, 400, -32602, "101", "protocolVersion"},
		"discover without params":    {"POST", `{"jsonrpc":"2.0","id":101,"method":"server/discover"}`, onDiscover, 400, -32602, "101", ""},
		"_meta without version":      {"POST", without("protocolVersion"), onDiscover, 400, -32602, "102", "protocolVersion"},
		"_meta without capabilities": {"POST", without("clientCapabilities"), onDiscover, 400, -32602, "102", "clientCapabilities"},
		"_meta is no object":         {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}`, plain, 400, -32602, "1", ""},
		"no header for version":      {"POST", discover, append(plain, "Mcp-Method", "server/discover"), 400, -32020, "1", "Mcp-Protocol-Version"},
		"other header for version":   {"POST", discover, change(onDiscover, "Mcp-Protocol-Version", "2025-11-25"), 400, -32020, "1", ""},
		"body has other version":     {"POST", strings.Replace(discover, mcpModern, "v999.0.0", 1), onDiscover, 400, -32020, "1", ""},
		"unknown version": {"POST", strings.Replace(discover, mcpModern, "1900-01-01", 1), change(onDiscover, "Mcp-Protocol-Version", "1900-01-01"), 400, -32022, "1",
			`"data":{"requested":"1900-01-01","supported":["2026-07-28","2025-11-25","2025-06-18"]}`},
		"unknown version in a header": {"POST", old("tools/list", "{}"), of("2024-11-05"), 400, -32022, `"a"`, `"requested":"2024-11-05"`},
		"no header for method":        {"POST", discover, append(of(mcpModern), "Accept", "*/*"), 400, -32020, "1", "Mcp-Method"},
		"other method":                {"POST", discover, modernHeaders("tools/list", ""), 400, -32020, "1", ""},
		"method in capitals":          {"POST", list, modernHeaders("TOOLS/LIST", ""), 400, -32020, "1", ""},
		"no header for name":          {"POST", call, modernHeaders("tools/call", ""), 400, -32020, "1", "Mcp-Name"},
		"other name":                  {"POST", call, modernHeaders("tools/call", "events_groups"), 400, -32020, "1", ""},
		"name in Base64":              {"POST", call, modernHeaders("tools/call", encoded), 200, 0, "1", "range "},
		"name in bad Base64":          {"POST", call, modernHeaders("tools/call", "=?base64?%%?="), 400, -32020, "1", "Base64"},
		"name in half of Base64":      {"POST", call, modernHeaders("tools/call", strings.TrimSuffix(encoded, "?=")), 400, -32020, "1", ""},
		"name with blanks around":     {"POST", call, modernHeaders("tools/call", " events_search "), 200, 0, "1", ""},
		"list":                        {"POST", list, modernHeaders("tools/list", ""), 200, 0, "1", `"ttlMs":3600000`},
		"list with a cursor":          {"POST", modern("tools/list", `"cursor":"x"`), modernHeaders("tools/list", ""), 400, -32602, "1", ""},
		"initialize":                  {"POST", modern("initialize", ""), modernHeaders("initialize", ""), 404, -32601, "1", ""},
		"ping":                        {"POST", modern("ping", ""), modernHeaders("ping", ""), 404, -32601, "1", ""},
		"resources/list":              {"POST", modern("resources/list", ""), modernHeaders("resources/list", ""), 404, -32601, "1", ""},
		"prompts/list":                {"POST", modern("prompts/list", ""), modernHeaders("prompts/list", ""), 404, -32601, "1", ""},
		"subscriptions/listen":        {"POST", modern("subscriptions/listen", ""), modernHeaders("subscriptions/listen", ""), 404, -32601, "1", ""},
		"a tool that is not":          {"POST", modern("tools/call", calling("events_delete", "{}")), modernHeaders("tools/call", "events_delete"), 400, -32602, "1", "events_delete"},
		"arguments are a list":        {"POST", modern("tools/call", calling("events_search", "[]")), onCall, 400, -32602, "1", "arguments"},
		"a call":                      {"POST", call, onCall, 200, 0, "1", `"content":[{"text":"range `},
		"session":                     {"POST", call, change(onCall, "Mcp-Session-Id", "x", "Last-Event-ID", "7"), 200, 0, "1", ""},

		"legacy initialize":          {"POST", old("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}`), plain, 200, 0, `"a"`, `"protocolVersion":"2025-06-18"`},
		"legacy, unknown version":    {"POST", old("initialize", `{"protocolVersion":"2024-11-05"}`), plain, 200, 0, `"a"`, `"protocolVersion":"2025-11-25"`},
		"legacy, newer version":      {"POST", old("initialize", `{"protocolVersion":"2026-07-28"}`), plain, 200, 0, `"a"`, `"protocolVersion":"2025-11-25"`},
		"legacy, version is missing": {"POST", old("initialize", `{}`), plain, 400, -32602, `"a"`, ""},
		"legacy ping":                {"POST", old("ping", `{}`), of("2025-11-25"), 200, 0, `"a"`, `"result":{}`},
		"legacy discover":            {"POST", old("server/discover", `{}`), of("2025-11-25"), 400, -32602, `"a"`, ""},
		"legacy list":                {"POST", old("tools/list", `{}`), of("2025-06-18"), 200, 0, `"a"`, `"result":{"tools":[`},
		"legacy list, no header":     {"POST", old("tools/list", `{}`), plain, 200, 0, `"a"`, ""},
		"legacy call":                {"POST", old("tools/call", `{`+calling("events_search", "{}")+`}`), of("2025-11-25"), 200, 0, `"a"`, `"result":{"content":[`},
		"legacy, a tool that is not": {"POST", old("tools/call", `{"name":"x"}`), of("2025-11-25"), 200, -32602, `"a"`, ""},
		"legacy resources/list":      {"POST", old("resources/list", `{}`), of("2025-11-25"), 404, -32601, `"a"`, ""},
		"below the path":             {"POST", list, nil, 404, 404, "", ""},
	} {
		path := "/mcp"
		if name == "below the path" {
			path = "/mcp/x"
		}
		a := w.do(c.method, path, c.body, c.headers...)
		if a.code != c.status || !strings.Contains(string(a.body), c.has) {
			t.Errorf("%s: %d, want %d with %q: %s", name, a.code, c.status, c.has, a.body)
			continue
		}
		if a.header.Get("Mcp-Session-Id") != "" || c.status == 405 && a.header.Get("Allow") != "POST" {
			t.Errorf("%s: %v", name, a.header)
		}
		if c.status == 202 {
			if len(a.body) > 0 {
				t.Errorf("%s: a body: %s", name, a.body)
			}
			continue
		}
		var got struct {
			JSONRPC string
			ID      json.RawMessage
			Result  json.RawMessage
			Error   struct{ Code int }
		}
		if err := json.Unmarshal(a.body, &got); err != nil || got.JSONRPC != "2.0" || string(got.ID) != c.id || got.Error.Code != c.code || (got.Result != nil) != (c.code == 0) {
			t.Errorf("%s: id %s, code %d, want %s, %d: %v %s", name, got.ID, got.Error.Code, c.id, c.code, err, a.body)
		}
		if media := a.header.Get("Content-Type"); media != "application/json" {
			t.Errorf("%s: Content-Type %q", name, media)
		}
	}
}

// TestMCPOrder: off, origin, token, method, body: each is decided before what comes after it.
func TestMCPOrder(t *testing.T) {
	t.Parallel()
	off := newWorld(t)
	on := newWorld(t, withMCP)
	evil, bad := []string{"Origin", "https://evil.example"}, []string{"Authorization", "Bearer bad"}
	both := append(evil, bad...)
	for _, c := range []struct {
		name, method string
		w            *world
		headers      []string
		code         int
	}{
		{"off", "GET", off, both, 404}, {"origin", "GET", on, both, 403}, {"token", "GET", on, bad, 401},
		{"method", "GET", on, nil, 405}, {"media", "POST", on, nil, 415}, {"body", "POST", on, []string{"Content-Type", "application/json"}, 400},
	} {
		a := c.w.do(c.method, "/mcp", "", c.headers...).must(c.code)
		if challenge := a.header.Get("WWW-Authenticate"); (challenge != "") != (c.code == 401) {
			t.Errorf("%s: challenge %q", c.name, challenge)
		}
		if c.code == 403 && (strings.Contains(string(a.body), `"id"`) || a.at("error.code") != 403.0) {
			t.Errorf("%s: %s", c.name, a.body)
		}
	}
}

// TestMCPOrigin: who may call tools from a page.
func TestMCPOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withMCP, func(c *api.Config) { c.Hosts = []string{"events.example"} })
	loopback, other := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}
	for _, c := range []struct {
		origins []string
		local   *net.TCPAddr
		allowed bool
	}{
		{nil, other, true},
		{[]string{"https://events.example"}, other, true}, {[]string{"https://EVENTS.example.:8443"}, other, true},
		{[]string{"http://localhost:3000"}, loopback, true}, {[]string{"http://127.0.0.1:6274"}, loopback, true},
		{[]string{"http://[::1]"}, loopback, true}, {[]string{"http://app.localhost"}, loopback, true},
		{[]string{"http://localhost:3000"}, other, false}, {[]string{"http://127.0.0.1"}, other, false},
		{[]string{"https://evil.example"}, loopback, false}, {[]string{"https://events.example.evil.example"}, other, false},
		{[]string{"https://evil-events.example"}, other, false}, {[]string{"null"}, loopback, false}, {[]string{""}, loopback, false},
		{[]string{"file://localhost"}, loopback, false}, {[]string{"https://events.example", "https://evil.example"}, other, false},
		{[]string{"localhost"}, loopback, false}, {[]string{"http://localhost.evil.example"}, loopback, false}, {[]string{"://"}, loopback, false},
		{[]string{"http://evil.example"}, nil, false}, {[]string{"http://localhost"}, nil, false},
	} {
		req := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(modern("tools/list", "")))
		req.Host = "evil.example" // which says nothing
		req.Header["Origin"] = c.origins
		for i, h := 0, append(modernHeaders("tools/list", ""), "Authorization", "Bearer good"); i < len(h); i += 2 {
			req.Header.Set(h[i], h[i+1])
		}
		if c.local != nil {
			req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, c.local))
		}
		rec := httptest.NewRecorder()
		w.handler().ServeHTTP(rec, req)
		if want := map[bool]int{true: 200, false: 403}[c.allowed]; rec.Code != want || rec.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q to %v: %d, want %d: %v", c.origins, c.local, rec.Code, want, rec.Header())
		}
	}
}
