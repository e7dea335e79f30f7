package attack

import (
	"context"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"

	"tidings.example/deploy/test/bench/internal/target"
)

// The connections of Unread, and the clients that they are of.
const (
	UnreadAnswers = 600
	unreadClients = 6
)

// Unread asks for long answers of every kind and reads none of them, until stop is called. A
// connection that the server closes is opened again. Unread returns when all were answered or
// refused once.
func Unread(ctx context.Context, s *Source) (stop func(), err error) {
	var requests [][]byte
	for i := range unreadClients {
		e, err := s.Services.EventsOf(ctx, s.Client+i, s.Namespace)
		if err != nil {
			return nil, err
		}
		lines := url.Values{"query": {`{namespace="` + s.Namespace + `"}`}, "limit": {"5000"}}.Encode()
		requests = append(requests,
			e.All("GET", "", target.JSONType),
			e.All("GET", "", target.ProtoType),
			e.All("GET", "?limit=5000", target.TableType),
			e.Request("GET", e.Path(), "Accept-Encoding: gzip\r\n", ""),
			e.All("GET", "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", target.JSONType),
			e.Watch(nil, 1),
			e.Request("GET", "/query/v1/events?limit=1000", "", ""),
			e.Request("GET", "/loki/api/v1/query_range?"+lines, "", ""),
		)
	}
	ctx, cancel := context.WithCancel(ctx)
	var answers, begun sync.WaitGroup
	begun.Add(UnreadAnswers)
	for i := range UnreadAnswers {
		answers.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			for ctx.Err() == nil {
				neglect(ctx, s.Services.EventsAddr.String(), requests[i%len(requests)], first)
			}
		})
	}
	begun.Wait() // making answers is work, which the row attack/flood is about
	return func() { cancel(); answers.Wait() }, nil
}

// neglect sends a request and reads one byte of what comes each second, until the server has
// closed the connection or ctx ends. The kernel keeps little for it. It calls first at the
// first byte, or if there is none.
func neglect(ctx context.Context, addr string, request []byte, first func()) {
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		if err != nil {
			return err
		}
		return failed
	}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	conn, err := small.DialContext(ctx, "tcp", addr)
	if err == nil {
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
		_, err = conn.Write(request)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		first()
		if err != nil {
			return
		}
	}
}
