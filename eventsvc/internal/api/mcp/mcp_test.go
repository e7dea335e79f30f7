package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/api/resource"
)

// TestBasicMCP: agents may send a user and a password too. A refusal leads to the document of /mcp, before it says
// anything of the request.
func TestBasicMCP(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, apitest.WithMCP, apitest.WithPasswords(nil))
	const document = `Bearer resource_metadata="https://events.example/.well-known/oauth-protected-resource/mcp"`
	challenge := `Basic realm="eventsvc", charset="UTF-8"`
	for name, c := range map[string]struct {
		header     string
		code       int
		challenges []string
	}{
		"right":          {apitest.BasicHeader("grafana", "s3cret"), 200, nil},
		"wrong":          {apitest.BasicHeader("grafana", "wrong"), 401, []string{document, challenge}},
		"empty":          {apitest.BasicHeader("grafana", ""), 401, []string{document, challenge}},
		"a token":        {apitest.BasicHeader("any", "e30.e30.e30"), 401, []string{document}},
		"nothing":        {"", 401, []string{document}},
		"busy":           {apitest.BasicHeader("grafana", "busy"), 429, nil},
		"the endpoint":   {apitest.BasicHeader("grafana", "down"), 503, nil},
		"another client": {"Bearer good", 200, nil},
	} {
		headers := append(apitest.ModernHeaders("tools/call", "events_search"), "Authorization", c.header)
		a := w.Do("POST", "/mcp", apitest.Modern("tools/call", apitest.Calling("events_search", "{}")), headers...)
		if a.Code != c.code || !slices.Equal(a.Header["Www-Authenticate"], c.challenges) {
			t.Errorf("%s: %d %v: %s", name, a.Code, a.Header["Www-Authenticate"], a.Body)
			continue
		}
		if c.code != 200 {
			continue
		}
		if text, failed := apitest.ToolText(t, a.Body); failed || !strings.HasPrefix(text, "range ") {
			t.Errorf("%s: %s", name, text)
		}
	}
	w.Do("GET", "/mcp", "", "Authorization", apitest.BasicHeader("grafana", "wrong")).Must(401)
	w.Do("GET", "/mcp", "", "Authorization", apitest.BasicHeader("grafana", "s3cret")).Must(405)
	w.Do("POST", "/mcp/x", "", "Authorization", apitest.BasicHeader("grafana", "s3cret")).Must(401)
	for path, want := range map[string]int{"": 200, "/mcp": 200} {
		w.Do("GET", resource.WellKnown+path, "").Must(want)
	}
	off := apitest.New(t, apitest.WithPasswords(nil))
	off.Do("GET", resource.WellKnown, "").Must(200)
	off.Do("GET", resource.WellKnown+"/mcp", "").Must(404)
	off.Do("POST", "/mcp", "{}", "Authorization", apitest.BasicHeader("grafana", "s3cret")).Must(404)
}

// TestMCPProtocol: raw requests, as the suite of the protocol makes them, and what they get.
func TestMCPProtocol(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t, apitest.WithMCP)
	plain := []string{"Content-Type", "application/json"}
	of := func(version string) []string { return append([]string{"Mcp-Protocol-Version", version}, plain...) }
	change := func(headers []string, pairs ...string) []string { return append(headers, pairs...) }
	discover, list, call := apitest.Modern("server/discover", ""), apitest.Modern("tools/list", ""), apitest.Modern("tools/call", apitest.Calling("events_search", "{}"))
	onDiscover, onCall := apitest.ModernHeaders("server/discover", ""), apitest.ModernHeaders("tools/call", "events_search")
	without := func(member string) string {
		meta := map[string]any{}
		_ = json.Unmarshal([]byte(apitest.MCPMeta), &meta)
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
		"body has other version":     {"POST", strings.Replace(discover, apitest.MCPModern, "v999.0.0", 1), onDiscover, 400, -32020, "1", ""},
		"unknown version": {"POST", strings.Replace(discover, apitest.MCPModern, "1900-01-01", 1), change(onDiscover, "Mcp-Protocol-Version", "1900-01-01"), 400, -32022, "1",
			`"data":{"requested":"1900-01-01","supported":["2026-07-28","2025-11-25","2025-06-18"]}`},
		"unknown version in a header": {"POST", old("tools/list", "{}"), of("2024-11-05"), 400, -32022, `"a"`, `"requested":"2024-11-05"`},
		"no header for method":        {"POST", discover, append(of(apitest.MCPModern), "Accept", "*/*"), 400, -32020, "1", "Mcp-Method"},
		"other method":                {"POST", discover, apitest.ModernHeaders("tools/list", ""), 400, -32020, "1", ""},
		"method in capitals":          {"POST", list, apitest.ModernHeaders("TOOLS/LIST", ""), 400, -32020, "1", ""},
		"no header for name":          {"POST", call, apitest.ModernHeaders("tools/call", ""), 400, -32020, "1", "Mcp-Name"},
		"other name":                  {"POST", call, apitest.ModernHeaders("tools/call", "events_groups"), 400, -32020, "1", ""},
		"name in Base64":              {"POST", call, apitest.ModernHeaders("tools/call", encoded), 200, 0, "1", "range "},
		"name in bad Base64":          {"POST", call, apitest.ModernHeaders("tools/call", "=?base64?%%?="), 400, -32020, "1", "Base64"},
		"name in half of Base64":      {"POST", call, apitest.ModernHeaders("tools/call", strings.TrimSuffix(encoded, "?=")), 400, -32020, "1", ""},
		"name with blanks around":     {"POST", call, apitest.ModernHeaders("tools/call", " events_search "), 200, 0, "1", ""},
		"list":                        {"POST", list, apitest.ModernHeaders("tools/list", ""), 200, 0, "1", `"ttlMs":3600000`},
		"list with a cursor":          {"POST", apitest.Modern("tools/list", `"cursor":"x"`), apitest.ModernHeaders("tools/list", ""), 400, -32602, "1", ""},
		"initialize":                  {"POST", apitest.Modern("initialize", ""), apitest.ModernHeaders("initialize", ""), 404, -32601, "1", ""},
		"ping":                        {"POST", apitest.Modern("ping", ""), apitest.ModernHeaders("ping", ""), 404, -32601, "1", ""},
		"resources/list":              {"POST", apitest.Modern("resources/list", ""), apitest.ModernHeaders("resources/list", ""), 404, -32601, "1", ""},
		"prompts/list":                {"POST", apitest.Modern("prompts/list", ""), apitest.ModernHeaders("prompts/list", ""), 404, -32601, "1", ""},
		"subscriptions/listen":        {"POST", apitest.Modern("subscriptions/listen", ""), apitest.ModernHeaders("subscriptions/listen", ""), 404, -32601, "1", ""},
		"a tool that is not":          {"POST", apitest.Modern("tools/call", apitest.Calling("events_delete", "{}")), apitest.ModernHeaders("tools/call", "events_delete"), 400, -32602, "1", "events_delete"},
		"arguments are a list":        {"POST", apitest.Modern("tools/call", apitest.Calling("events_search", "[]")), onCall, 400, -32602, "1", "arguments"},
		"a call":                      {"POST", call, onCall, 200, 0, "1", `"content":[{"text":"range `},
		"session":                     {"POST", call, change(onCall, "Mcp-Session-Id", "x", "Last-Event-ID", "7"), 200, 0, "1", ""},

		"legacy initialize":          {"POST", old("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}`), plain, 200, 0, `"a"`, `"protocolVersion":"2025-06-18"`},
		"legacy, unknown version":    {"POST", old("initialize", `{"protocolVersion":"2024-11-05"}`), plain, 200, 0, `"a"`, `"protocolVersion":"2025-11-25"`},
		"legacy, newer version":      {"POST", old("initialize", `{"protocolVersion":"2026-07-28"}`), plain, 200, 0, `"a"`, `"protocolVersion":"2025-11-25"`},
		"legacy, version is missing": {"POST", old("initialize", `{}`), plain, 400, -32602, `"a"`, ""},
		"legacy ping":                {"POST", old("ping", `{}`), of("2025-11-25"), 200, 0, `"a"`, `"result":{}`},
		"legacy discover":            {"POST", old("server/discover", `{}`), of("2025-11-25"), 400, -32602, `"a"`, ""},
		"legacy list, params null":   {"POST", old("tools/list", `null`), of("2025-06-18"), 200, 0, `"a"`, `"result":{"tools":[`},
		"legacy list":                {"POST", old("tools/list", `{}`), of("2025-06-18"), 200, 0, `"a"`, `"result":{"tools":[`},
		"legacy list, no header":     {"POST", old("tools/list", `{}`), plain, 200, 0, `"a"`, ""},
		"legacy call":                {"POST", old("tools/call", `{`+apitest.Calling("events_search", "{}")+`}`), of("2025-11-25"), 200, 0, `"a"`, `"result":{"content":[`},
		"legacy, a tool that is not": {"POST", old("tools/call", `{"name":"x"}`), of("2025-11-25"), 200, -32602, `"a"`, ""},
		"legacy resources/list":      {"POST", old("resources/list", `{}`), of("2025-11-25"), 404, -32601, `"a"`, ""},
		"below the path":             {"POST", list, nil, 404, 404, "", ""},
	} {
		path := "/mcp"
		if name == "below the path" {
			path = "/mcp/x"
		}
		a := w.Do(c.method, path, c.body, c.headers...)
		if a.Code != c.status || !strings.Contains(string(a.Body), c.has) {
			t.Errorf("%s: %d, want %d with %q: %s", name, a.Code, c.status, c.has, a.Body)
			continue
		}
		if a.Header.Get("Mcp-Session-Id") != "" || c.status == 405 && a.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %v", name, a.Header)
		}
		if c.status == 202 {
			if len(a.Body) > 0 {
				t.Errorf("%s: a body: %s", name, a.Body)
			}
			continue
		}
		var got struct {
			JSONRPC string
			ID      json.RawMessage
			Result  json.RawMessage
			Error   struct{ Code int }
		}
		if err := json.Unmarshal(a.Body, &got); err != nil || got.JSONRPC != "2.0" || string(got.ID) != c.id || got.Error.Code != c.code || (got.Result != nil) != (c.code == 0) {
			t.Errorf("%s: id %s, code %d, want %s, %d: %v %s", name, got.ID, got.Error.Code, c.id, c.code, err, a.Body)
		}
		if media := a.Header.Get("Content-Type"); media != "application/json" {
			t.Errorf("%s: Content-Type %q", name, media)
		}
	}
}

// TestMCPOrder: off, origin, token, method, body: each is decided before what comes after it.
func TestMCPOrder(t *testing.T) {
	t.Parallel()
	off := apitest.New(t)
	on := apitest.New(t, apitest.WithMCP)
	evil, bad := []string{"Origin", "https://evil.example"}, []string{"Authorization", "Bearer bad"}
	both := append(evil, bad...)
	for _, c := range []struct {
		name, method string
		w            *apitest.World
		headers      []string
		code         int
	}{
		{"off", "GET", off, both, 404}, {"origin", "GET", on, both, 403}, {"token", "GET", on, bad, 401},
		{"method", "GET", on, nil, 405}, {"media", "POST", on, nil, 415}, {"body", "POST", on, []string{"Content-Type", "application/json"}, 400},
	} {
		a := c.w.Do(c.method, "/mcp", "", c.headers...).Must(c.code)
		if challenge := a.Header.Get("WWW-Authenticate"); (challenge != "") != (c.code == 401) {
			t.Errorf("%s: challenge %q", c.name, challenge)
		}
		if c.code == 403 && (strings.Contains(string(a.Body), `"id"`) || a.At("error.code") != 403.0) {
			t.Errorf("%s: %s", c.name, a.Body)
		}
	}
}

// TestMCPOrigin: who may call tools from a page.
func TestMCPOrigin(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, apitest.WithMCP, func(c *api.Config) { c.Hosts = []string{"events.example"} })
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
		req := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(apitest.Modern("tools/list", "")))
		req.Host = "evil.example" // which says nothing
		req.Header["Origin"] = c.origins
		for i, h := 0, append(apitest.ModernHeaders("tools/list", ""), "Authorization", "Bearer good"); i < len(h); i += 2 {
			req.Header.Set(h[i], h[i+1])
		}
		if c.local != nil {
			req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, c.local))
		}
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, req)
		if want := map[bool]int{true: 200, false: 403}[c.allowed]; rec.Code != want || rec.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q to %v: %d, want %d: %v", c.origins, c.local, rec.Code, want, rec.Header())
		}
	}
}
