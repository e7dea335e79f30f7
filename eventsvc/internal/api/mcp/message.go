package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"unicode/utf8"

	"tidings.example/shared/bearer"
)

// The methods that are served, besides ping.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodList       = "tools/list"
	methodCall       = "tools/call"
)

// The codes of errors: those of JSON-RPC 2.0 and, from -32020 on, of the protocol.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeHeaderMismatch     = -32020
	codeUnsupportedVersion = -32022
)

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`

	status int // of HTTP; 0: 400
}

func invalidParams(format string, args ...any) *rpcError {
	return &rpcError{Code: codeInvalidParams, Message: "Invalid params: " + fmt.Sprintf(format, args...)}
}

func invalidRequest(text string) *rpcError {
	return &rpcError{Code: codeInvalidRequest, Message: "Invalid request: " + text}
}

// object is a JSON object whose members are not decoded. Their names are case-sensitive, which they are not to a
// struct.
type object map[string]json.RawMessage

// text returns a member that is a string, "" for others.
func (o object) text(name string) (text string) {
	if json.Unmarshal(o[name], &text) != nil {
		return ""
	}
	return text
}

// in returns a member that is an object, nil if it is null or not there.
func (o object) in(name string) (object, *rpcError) {
	raw, ok := o[name]
	if !ok || string(raw) == "null" {
		return nil, nil
	}
	in, err := bearer.DecodeObject(raw)
	if err != nil {
		return nil, invalidParams("%s: %v", name, err)
	}
	return in, nil
}

func (o object) with(more object) object {
	all := maps.Clone(o)
	maps.Copy(all, more)
	return all
}

func (o object) without(names ...string) object {
	rest := maps.Clone(o)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// raw encodes what is made of texts, numbers, lists and objects of them.
func raw(v any) json.RawMessage {
	b, _ := marshal(v)
	return b
}

// marshal encodes JSON without the escapes that are for pages.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// message is a request or, without an id, a notification.
type message struct {
	id     json.RawMessage
	method string
	params object
	modern bool // carries its version by itself, instead of an initialize before it
}

var number = regexp.MustCompile(`^-?[0-9]+$`)

// parse reads a message. That which is returned with an error has the id, if it could be read.
func parse(body []byte) (*message, *rpcError) {
	m := &message{}
	if !utf8.Valid(body) || !json.Valid(body) {
		return m, &rpcError{Code: codeParse, Message: "Parse error: the body is no JSON"}
	}
	members, err := bearer.DecodeObject(body)
	if err != nil {
		return m, invalidRequest("send one message, which is an object, in each body: " + err.Error())
	}
	o := object(members)
	if id, ok := o["id"]; ok {
		if id[0] != '"' && !number.Match(id) {
			return m, invalidRequest("id must be a string or a whole number")
		}
		m.id = id
	}
	m.method = o.text("method")
	switch {
	case o.text("jsonrpc") != "2.0":
		return m, invalidRequest(`jsonrpc must be "2.0"`)
	case m.method == "":
		return m, invalidRequest("method is missing: this server asks nothing, so it takes no responses")
	case m.id == nil && !isNotification(m.method):
		return m, invalidRequest("id is missing")
	}
	var problem *rpcError
	m.params, problem = o.in("params")
	return m, problem
}

func isNotification(method string) bool {
	const prefix = "notifications/"
	return len(method) > len(prefix) && method[:len(prefix)] == prefix
}

// failure is an error of this service while it answers a message.
type failure struct {
	error
	id json.RawMessage
}

func (f *failure) Unwrap() error { return f.error }

// idOf returns the id of the message whose answer failed, nil if there is none.
func idOf(err error) json.RawMessage {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.id
	}
	return nil
}
