package attack

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"tidings.example/deploy/test/bench/internal/target"
)

// The clients of Expressions and of Tails.
const (
	ExpressionClients = 6
	OpenTails         = 30
)

// slowExpression is a short regular expression with 1,833 instructions, of which most take
// part in each step of a match. Two of them are as much as a query may have.
const slowExpression = "(?:(?:.{0,30}){0,30})zzN"

// longNote is how long the note is that Expressions stores.
const longNote = 1 << 20

// Expressions asks for lines that match large regular expressions, from connections that
// are closed after two seconds and opened again, until stop is called: with the largest
// query that is accepted, with a short expression that meets a long note, and with one that
// is too large. Before that it stores the long note.
func Expressions(ctx context.Context, s *Source) (stop func(), err error) {
	e, err := s.Services.EventsOf(ctx, s.Client, s.Own)
	if err != nil {
		return nil, err
	}
	note := `{"metadata":{"name":"long","namespace":"` + s.Own + `"},"involvedObject":{"kind":"Pod","name":"a","namespace":"` + s.Own + `"},"reason":"Long","type":"Normal",` +
		`"source":{"component":"a"},"firstTimestamp":"` + now() + `","lastTimestamp":"` + now() + `","count":1,"message":"` + strings.Repeat("x", longNote) + `"}`
	first := e.Request("POST", "/api/v1/namespaces/"+s.Own+"/events", "Content-Type: "+target.JSONType+"\r\n", note)
	queries := []string{
		`{} |~ "` + slowExpression + `" or "` + slowExpression + `"`,
		`{} |~ "` + slowExpression + `"`,
		`{} |~ "` + slowExpression + `"` + strings.Repeat(` or "`+slowExpression+`"`, 439),
	}
	requests := [][]byte{first}
	for _, q := range queries {
		form := url.Values{"query": {q}, "since": {"1h"}, "limit": {"5000"}}.Encode()
		requests = append(requests, e.Request("POST", "/loki/api/v1/query_range", "Content-Type: application/x-www-form-urlencoded\r\n", form))
	}
	ctx, cancel := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for i := range ExpressionClients {
		clients.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				leave(ctx, s.Services.EventsAddr.String(), requests[n%len(requests)], 2*time.Second)
			}
		})
	}
	return func() { cancel(); clients.Wait() }, nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// leave sends a request and closes its connection after a time, or when it is answered.
func leave(ctx context.Context, addr string, request []byte, after time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		<-ctx.Done() // not again at once
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(request); err == nil {
		_, _ = conn.Read(make([]byte, 1))
	}
}

// Tails opens tails with the largest query that is accepted, as many as it can, and leaves
// them when stop is called. What the good clients create is matched for each.
func Tails(ctx context.Context, s *Source) (stop func(), err error) {
	e, err := s.Services.EventsOf(ctx, s.Client, s.Namespace)
	if err != nil {
		return nil, err
	}
	query := `{} | json` + strings.Repeat(` !~ "`+slowExpression+`"`, 2)
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	request := e.Request("GET", "/loki/api/v1/tail?query="+url.QueryEscape(query), upgrade, "")
	ctx, cancel := context.WithCancel(ctx)
	var tails sync.WaitGroup
	for range OpenTails {
		tails.Go(func() {
			for ctx.Err() == nil {
				hold(ctx, s.Services.EventsAddr.String(), request)
			}
		})
	}
	return func() { cancel(); tails.Wait() }, nil
}

// hold sends a request and reads what comes until the server or ctx ends that, and waits a
// little.
func hold(ctx context.Context, addr string, request []byte) {
	if conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr); err == nil {
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
		_, err = conn.Write(request)
		for b := make([]byte, 4096); err == nil; {
			_, err = conn.Read(b)
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}
