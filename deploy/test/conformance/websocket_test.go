package conformance_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientwebsocket "k8s.io/client-go/transport/websocket"
)

// socket is a watch over a WebSocket, by client-go's own client for them.
type socket struct {
	*websocket.Conn
	binary bool
}

// dial opens a watch; protocols are what it offers beside the token.
func (s *server) dial(t *testing.T, config *rest.Config, path, accept string, protocols ...string) (*socket, error) {
	t.Helper()
	rt, holder, err := clientwebsocket.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if len(protocols) == 0 {
		protocols = []string{"watch.example"}
	}
	conn, err := clientwebsocket.Negotiate(rt, holder, req, protocols...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return &socket{Conn: conn, binary: accept == typeProtobuf}, nil
}

// next is the next event, which must be a message of its own.
func (w *socket) next(t *testing.T) change {
	t.Helper()
	_ = w.SetReadDeadline(time.Now().Add(patience))
	kind, message, err := w.ReadMessage()
	if err != nil {
		t.Fatalf("no message: %v", err)
	}
	if !w.binary {
		var c struct {
			Type   string
			Object object
		}
		if err := json.Unmarshal(message, &c); err != nil || kind != websocket.TextMessage {
			t.Fatalf("message of type %d, %v: %s", kind, err, message)
		}
		return change{c.Type, c.Object}
	}
	var outer metav1.WatchEvent
	if err := outer.Unmarshal(message); err != nil || kind != websocket.BinaryMessage {
		t.Fatalf("message of type %d, %v: %q", kind, err, message)
	}
	return change{outer.Type, parse(t, must(json.Marshal(unwrap(t, outer.Object.Raw))).or(t))}
}

func (w *socket) want(t *testing.T, changes ...string) (last change) {
	t.Helper()
	for _, want := range changes {
		if last = w.next(t); last.String() != want {
			t.Fatalf("got %s, want %s", last, want)
		}
	}
	return last
}

// end waits for the close, which must be a clean one.
func (w *socket) end(t *testing.T) {
	t.Helper()
	_ = w.SetReadDeadline(time.Now().Add(patience))
	if _, message, err := w.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Fatalf("got %v %s, want a normal close", err, message)
	}
}

// withProtocolToken carries the token as a subprotocol, as programs in a
// browser have to.
func withProtocolToken(config *rest.Config) (*rest.Config, string) {
	plain := rest.CopyConfig(config)
	plain.BearerToken = ""
	return plain, "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(config.BearerToken))
}

// TestWebSocket is about watches over WebSockets (4.5): the same events as over
// plain HTTP, each in a message, in both formats, with selectors and over a
// restart.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	path := in(eventsV1, ns)
	s.create(t, ns, "a", `{"metadata":{"labels":{"color":"red"}}}`)
	s.create(t, ns, "b")
	for wire, config := range map[string]*rest.Config{"TLS": s.config(), "plain": s.plainConfig()} {
		for format, accept := range map[string]string{"JSON": typeJSON, "protobuf": typeProtobuf} {
			t.Run("events in "+format+", "+wire, func(t *testing.T) {
				w := must(s.dial(t, config, path+"?watch=true&allowWatchBookmarks=true&labelSelector=color%3Dred", accept)).or(t)
				c := w.want(t, "ADDED a", bookmark)
				if w.Subprotocol() != "watch.example" || !c.initialEnd() {
					t.Errorf("subprotocol %q, bookmark %v", w.Subprotocol(), c.object)
				}
				s.patch(t, path+"/b", typeMerge, `{"metadata":{"labels":{"color":"red"}}}`).expect(http.StatusOK)
				w.want(t, "ADDED b")
				s.patch(t, path+"/b", typeMerge, `{"metadata":{"labels":{"color":"blue"}}}`).expect(http.StatusOK)
				w.want(t, "DELETED b")
			})
		}
	}
	t.Run("token as a subprotocol", func(t *testing.T) {
		config, token := withProtocolToken(s.config())
		w := must(s.dial(t, config, in(coreV1, ns)+"?watch=true&fieldSelector=metadata.name%3Da", "", token, "base64.binary.k8s.io", "other")).or(t)
		if c := w.want(t, "ADDED a"); c.object.text("apiVersion") != "v1" || w.Subprotocol() != "base64.binary.k8s.io" {
			t.Errorf("subprotocol %q, object %v", w.Subprotocol(), c.object)
		}
	})
	t.Run("what the client sends", func(t *testing.T) {
		w := must(s.dial(t, s.plainConfig(), path+"?watch=true&fieldSelector=metadata.name%3Da", "")).or(t)
		w.want(t, "ADDED a")
		ponged := make(chan string, 1)
		w.SetPongHandler(func(text string) error { ponged <- text; return nil })
		for _, kind := range []int{websocket.TextMessage, websocket.BinaryMessage, websocket.PingMessage} {
			if err := w.WriteMessage(kind, []byte("hello")); err != nil {
				t.Fatal(err)
			}
		}
		s.patch(t, path+"/a", typeMerge, `{"metadata":{"annotations":{"x":"1"}}}`).expect(http.StatusOK)
		w.want(t, "MODIFIED a")
		// Pings may be answered behind events, not only between them.
		for i := 2; len(ponged) == 0; i++ {
			s.patch(t, path+"/a", typeMerge, `{"metadata":{"annotations":{"x":"`+strings.Repeat("1", i)+`"}}}`).expect(http.StatusOK)
			w.want(t, "MODIFIED a")
		}
		if got := <-ponged; got != "hello" {
			t.Errorf("pong %q", got)
		}
		if err := w.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		w.end(t)
	})
	t.Run("table and metadata", func(t *testing.T) {
		w := must(s.dial(t, s.config(), path+"?watch=true", typeJSON+asTable)).or(t)
		if c := w.next(t); c.object.text("kind") != "Table" || c.object.text("rows.0.object.metadata.name") != "a" {
			t.Errorf("got %v", c.object)
		}
		w = must(s.dial(t, s.config(), path+"?watch=true", typeJSON+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")).or(t)
		if c := w.want(t, "ADDED a"); c.object.text("kind") != "PartialObjectMetadata" {
			t.Errorf("got %v", c.object)
		}
	})
	t.Run("namespaces", func(t *testing.T) {
		w := must(s.dial(t, s.config(), coreV1+"/namespaces?watch=true&fieldSelector=metadata.name%3D"+ns, "")).or(t)
		w.want(t, "ADDED "+ns)
	})
	t.Run("timeoutSeconds", func(t *testing.T) {
		w := must(s.dial(t, s.config(), path+"?watch=true&timeoutSeconds=5&fieldSelector=metadata.name%3Da", "")).or(t)
		w.want(t, "ADDED a")
		w.end(t)
	})
	t.Run("ERROR is the last message", func(t *testing.T) {
		w := must(s.dial(t, s.config(), path+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999", "")).or(t)
		if c := w.want(t, "ERROR"); c.object.text("reason") != "Timeout" {
			t.Errorf("got %v", c.object)
		}
		w.end(t)
	})
	t.Run("over a restart", func(t *testing.T) {
		from := s.get(t, path).object().text("metadata.resourceVersion")
		for format, accept := range map[string]string{"JSON": typeJSON, "protobuf": typeProtobuf} {
			query := path + "?watch=true&labelSelector=restart%3Dyes&resourceVersion="
			w := must(s.dial(t, s.config(), query+from, accept)).or(t)
			s.create(t, ns, "r1-"+strings.ToLower(format), `{"metadata":{"labels":{"restart":"yes"}}}`)
			last := w.want(t, "ADDED r1-"+strings.ToLower(format)).object.text("metadata.resourceVersion")
			s.restart(t)
			w.end(t)
			s.create(t, ns, "r2-"+strings.ToLower(format), `{"metadata":{"labels":{"restart":"yes"}}}`)
			w = must(s.dial(t, s.config(), query+last, accept)).or(t)
			from = w.want(t, "ADDED r2-"+strings.ToLower(format)).object.text("metadata.resourceVersion")
		}
	})
}

// upgrade is a request for an upgrade, by hand; what it offers beside.
func upgrade(path string, protocols ...string) call {
	header := map[string]string{
		"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
	}
	if len(protocols) > 0 {
		header["Sec-WebSocket-Protocol"] = strings.Join(protocols, ", ")
	}
	return call{method: "GET", path: path, header: header}
}

// TestWebSocketRefused: an error before the first event is an ordinary HTTP
// answer, and a WebSocket counts as a watch in limits and metrics.
func TestWebSocketRefused(t *testing.T) {
	t.Parallel()
	s, ns := startOne(t, "--max-watches", "4"), namespace(t)
	path := in(eventsV1, ns)
	s.create(t, ns, "a")
	watch := path + "?watch=true"
	anonymous := func(c call) call { c.anonymous = true; return c }
	token := func(text string) string {
		return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	checkRefusals(t, s, []refusal{
		{name: "no token", call: anonymous(upgrade(watch)), code: 401, reason: metav1.StatusReasonUnauthorized},
		{name: "bad token as a subprotocol", call: anonymous(upgrade(watch, token("bad"), "x")), code: 401, reason: metav1.StatusReasonUnauthorized},
		{name: "nothing beside the token", call: anonymous(upgrade(watch, token(s.token))), code: 401, reason: metav1.StatusReasonUnauthorized},
		{name: "token in another encoding", call: anonymous(upgrade(watch, "base64url.bearer.authorization.k8s.io.%%%", "x")), code: 401, reason: metav1.StatusReasonUnauthorized},
		{name: "two tokens", call: upgrade(watch, token(s.token), "x"), code: 401, reason: metav1.StatusReasonUnauthorized},
		{name: "options", call: upgrade(watch + "&resourceVersionMatch=Exact&resourceVersion=1"), code: 422, reason: metav1.StatusReasonInvalid},
		{name: "selector", call: upgrade(watch + "&fieldSelector=nope%3Dx"), code: 400, reason: metav1.StatusReasonBadRequest},
	})
	t.Run("no watch, no upgrade", func(t *testing.T) {
		if got := s.do(t, upgrade(path)).expect(http.StatusOK).object().names(); len(got) != 1 {
			t.Errorf("got %v", got)
		}
		s.do(t, anonymous(upgrade(path, token(s.token), "x"))).expect(http.StatusOK)
	})
	t.Run("other version of the protocol", func(t *testing.T) {
		c := upgrade(watch)
		c.header["Sec-WebSocket-Version"] = "8"
		if a := s.do(t, c).expect(http.StatusBadRequest); a.header.Get("Sec-WebSocket-Version") != "13" {
			t.Errorf("header %v", a.header)
		}
	})
	t.Run("counts as a watch", func(t *testing.T) {
		w := must(s.dial(t, s.config(), watch, "")).or(t)
		w.want(t, "ADDED a")
		refusal{call: upgrade(watch), code: 429, reason: metav1.StatusReasonTooManyRequests}.check(t, s)
		if got := s.metric(t, "eventsvc_watches"); got != "1" {
			t.Errorf("%s watches", got)
		}
		w.Close()
		eventually(t, "the watch is counted out", func() error {
			if got := s.metric(t, "eventsvc_watches"); got != "0" {
				return errors.New(got)
			}
			return nil
		})
		if got := s.metric(t, `http_requests_total{client="go",code="101",verb="watch"}`); got != "1" {
			t.Errorf("%s upgrades", got)
		}
	})
}

// metric is the value of a metric, empty if there is none.
func (s *server) metric(t *testing.T, name string) string {
	t.Helper()
	res := must(s.plain.Get("http://" + s.adminAddr + "/metrics")).or(t)
	defer res.Body.Close()
	text := string(must(io.ReadAll(res.Body)).or(t))
	for line := range strings.SplitSeq(text, "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return value
		}
	}
	return ""
}

// TestWebSocketPython drives watches with the WebSocket client of Debian's
// python3-websocket, which belongs to the Python client. After a restart they
// resume where they were.
func TestWebSocketPython(t *testing.T) {
	t.Parallel()
	python := pythonWith(t, "websocket", "python3-websocket")
	s, ns := start(t), namespace(t)
	s.create(t, ns, "a")
	config, token := withProtocolToken(s.config())
	cmd := exec.CommandContext(within(t), python, "testdata/sockets.py", "wss"+strings.TrimPrefix(config.Host, "https")+in(eventsV1, ns), s.caFile(), s.token, token)
	cmd.Stderr = os.Stderr
	out := must(cmd.StdoutPipe()).or(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	want := func(text string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != text {
			t.Fatalf("got %q, %v; want %q", lines.Text(), lines.Err(), text)
		}
	}
	want("binary ADDED")
	want("text ADDED a")
	s.create(t, ns, "b")
	want("text ADDED b")
	s.restart(t)
	want("closed 1000")
	s.create(t, ns, "c")
	want("text ADDED c")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// pythonWith finds an interpreter that has a module. Another one may come first
// on PATH than the one that Debian's packages are for.
func pythonWith(t *testing.T, module, pkg string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	missing(t, "the Python module "+module, "apt-get install "+pkg)
	return ""
}
