package ctl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/shared/printable"
)

// mcpCmd passes messages of the Model Context Protocol on.
type mcpCmd struct {
	access `embed:""`
}

// Help is shown below the settings.
func (*mcpCmd) Help() string {
	return `Example:

    {"mcpServers": {"tidings": {"command": "eventsvc", "args": ["mcp", "--kubeconfig", "/home/me/.kube/config"]}}}

A program such as an assistant starts this command and speaks to it over its standard input and output: one message of the
Model Context Protocol in each line. The command sends each message to /mcp of the server, with a token that it renews by
itself, and prints the answer. It keeps nothing. The example is the settings of such a program.

Standard error says why there is no answer. The command ends with its input.

Exit codes: 0 at the end of the input, 1 failure, 2 usage.`
}

const (
	// maxMessage is the length of the longest line that is looked at. The server takes less, and says so.
	maxMessage = 1 << 20
	// parallelMessages are sent at a time at most. Those behind them wait.
	parallelMessages = 16
)

// Run passes messages on until the input ends.
func (m *mcpCmd) Run(ctx context.Context, std IO) error {
	c, _, err := m.open()
	if err != nil {
		return err
	}
	b := &bridge{client: c, std: std, places: make(chan struct{}, parallelMessages), running: map[string]context.CancelFunc{}}
	read := make(chan error, 1)
	go func() { read <- b.read(ctx) }()
	select {
	case err = <-read:
		b.sent.Wait()
		return err
	case <-ctx.Done():
		return nil
	}
}

// bridge passes messages between a program and a server.
type bridge struct {
	client *client.Client
	std    IO
	places chan struct{}
	sent   sync.WaitGroup

	mu      sync.Mutex                    // for what follows, and for writing to std
	running map[string]context.CancelFunc // requests without an answer, by their id
}

// read reads a message from each line.
func (b *bridge) read(ctx context.Context) error {
	lines := bufio.NewReaderSize(b.std.In, 64<<10)
	for {
		line, tooLong, err := readLine(lines)
		switch {
		case tooLong:
			b.fail(nil, -32600, fmt.Errorf("the message has more than %d bytes", maxMessage))
		case len(line) > 0:
			b.take(ctx, line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
	}
}

// readLine reads a line without the blanks around it. Of one that is too long it keeps nothing.
func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(piece) > maxMessage; tooLong {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), tooLong, err
		}
	}
}

// message has the members of a message that decide how it is sent.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// take sends a message, once there is a place for it. Of notifications it heeds the one that cancels a request, and
// passes none on: the server keeps no state that they could change.
func (b *bridge) take(ctx context.Context, line []byte) {
	var m message
	if !json.Valid(line) {
		b.fail(nil, -32700, errors.New("the line is no JSON"))
		return
	}
	_ = json.Unmarshal(line, &m) // what cannot be read in it, the server refuses
	if strings.HasPrefix(m.Method, "notifications/") && m.ID == nil {
		if m.Method == "notifications/cancelled" {
			b.cancel(m.Params.RequestID)
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	b.running[string(m.ID)] = cancel
	b.mu.Unlock()
	b.places <- struct{}{}
	b.sent.Go(func() {
		defer func() {
			b.cancel(m.ID)
			<-b.places
		}()
		b.send(ctx, &m, line)
	})
}

// cancel ends a request, if it has no answer yet.
func (b *bridge) cancel(id json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cancel := b.running[string(id)]; cancel != nil {
		cancel()
		delete(b.running, string(id))
	}
}

// send sends a message and prints the answer. A request that was cancelled gets none.
func (b *bridge) send(ctx context.Context, m *message, line []byte) {
	status, body, err := b.client.Exchange(ctx, client.Request{Method: http.MethodPost, Path: "/mcp", Header: m.header(), Body: json.RawMessage(line)})
	var answer struct {
		ID    json.RawMessage
		Error *struct {
			Code    int
			Message string
		}
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		b.fail(m.ID, -32603, err)
	case json.Unmarshal(body, &answer) == nil && answer.ID != nil:
		b.print(body)
	case status < 300 && len(bytes.TrimSpace(body)) == 0: // it asked for nothing
	default:
		code, text := status, http.StatusText(status)
		if answer.Error != nil {
			code, text = answer.Error.Code, answer.Error.Message
		}
		b.fail(m.ID, code, client.Refusal(status, text))
	}
}

// header returns the headers that repeat what a message says. Before revision 2026-07-28 there are none.
func (m *message) header() http.Header {
	h := http.Header{}
	if m.Params.Meta.Version == "" {
		return h
	}
	h.Set("Mcp-Protocol-Version", m.Params.Meta.Version)
	h.Set("Mcp-Method", m.Method)
	if m.Params.Name != "" {
		h.Set("Mcp-Name", headerValue(m.Params.Name))
	}
	return h
}

// headerValue encodes a text that a header could not have as it is.
func headerValue(text string) string {
	plain := !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) && strings.TrimSpace(text) == text
	if plain && !strings.HasPrefix(text, "=?base64?") {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// fail answers a message with an error, and says on standard error what can be done about it.
func (b *bridge) fail(id json.RawMessage, code int, err error) {
	text := printable.OneLine(err.Error())
	if hint := client.Hint(err); hint != "" {
		text += ": " + hint
	}
	_, _ = fmt.Fprintln(b.std.Err, "eventsvc mcp:", text)
	answer := map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": code, "message": text}}
	if id != nil {
		answer["id"] = id
	}
	encoded, _ := json.Marshal(answer) // texts, a number and the id that was read: no error
	b.print(encoded)
}

// print prints a message as one line.
func (b *bridge) print(message []byte) {
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return
	}
	line.WriteByte('\n')
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.std.Out.Write(line.Bytes()) // a program that is gone closes the input too
}
