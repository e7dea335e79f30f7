// Package attack makes the requests of clients that mean harm to a service: requests that cost
// it much and them little. The rows of the benchmark measure good clients meanwhile.
package attack

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// Source is who attacks, and what.
type Source struct {
	Services  *target.Services
	Client    int    // the first of the clients whose tokens are used
	Namespace string // with 10,000 events
	Own       string // a namespace in which nobody else creates events
	Tokens    bool   // tokensvc is attacked, by those that can be; otherwise eventsvc
}

// addr is where the service that is attacked answers over HTTPS, or plain HTTP.
func (s *Source) addr(plain bool) netip.AddrPort {
	switch {
	case s.Tokens && plain:
		return s.Services.TokenAddr
	case s.Tokens:
		return s.Services.TokenAPI()
	case plain:
		return s.Services.EventsAddr
	}
	return s.Services.API()
}

// Make makes the requests of an attack.
type Make func(context.Context, *Source) (load.Spec, error)

// UnknownKeys sends up to 10,000 tokens a second, each with another key id, from 64
// connections that wait for their answers.
func UnknownKeys(_ context.Context, s *Source) (load.Spec, error) {
	encode := base64.RawURLEncoding.EncodeToString
	claims := encode([]byte(`{"iss":"http://` + s.Services.TokenAddr.String() + `","sub":"x"}`))
	signature := strings.Repeat("A", 342)
	return load.Spec{
		Addr: s.Services.API(), Conns: 64, Interval: 100 * time.Microsecond,
		Next: func(dst []byte, i int) []byte {
			header := encode([]byte(`{"alg":"RS256","kid":"unknown-` + strconv.Itoa(i) + `"}`))
			return append(dst, target.NewEvents("a", header+"."+claims+"."+signature, s.Namespace).All("GET", "", target.JSONType)...)
		},
		Check: load.Status(http.StatusUnauthorized),
	}, nil
}

// Flood asks for lists and creates from as many connections as a client may
// use.
func Flood(ctx context.Context, s *Source) (load.Spec, error) {
	e, err := s.Services.EventsOf(ctx, s.Client, s.Namespace)
	if err != nil {
		return load.Spec{}, err
	}
	own, err := s.Services.EventsOf(ctx, s.Client, s.Own)
	return load.Spec{
		Addr: s.Services.API(), Conns: 256,
		Next: func(dst []byte, i int) []byte {
			if i%2 == 0 {
				return own.Create.Fill(dst, i)
			}
			return append(dst, e.All("GET", "?limit=100", target.JSONType)...)
		},
		Keep:  func(int) bool { return false },
		Check: load.OneOf(200, 201, 429),
	}, err
}

// LargeBodies sends events of 3 MiB.
func LargeBodies(ctx context.Context, s *Source) (load.Spec, error) {
	e, err := s.Services.EventsOf(ctx, s.Client, "large")
	if err != nil {
		return load.Spec{}, err
	}
	body := `{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 3<<20-1000) + `"}},"regarding":{"namespace":"large"},` +
		`"eventTime":"2026-01-02T03:04:05.000006Z","reportingController":"a.example/b","reportingInstance":"c","action":"d","reason":"e","type":"Normal"}`
	request := e.Request("POST", e.Path(), "Content-Type: "+target.JSONType+"\r\n", body)
	return load.Spec{
		Addr: s.Services.API(), Conns: 8,
		Next:  func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: load.OneOf(422, 429),
	}, nil
}

// Bombs sends requests that would cost much time or memory if they were processed
// without limits.
func Bombs(ctx context.Context, s *Source) (load.Spec, error) {
	e, err := s.Services.EventsOf(ctx, s.Client, s.Namespace)
	if err != nil {
		return load.Spec{}, err
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err = z.Write([]byte(`{"note":"` + strings.Repeat("x", 64<<20) + `"}`))
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		aliases += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 8) + "*" + string(c-1) + "]\n"
	}
	one := e.Path() + "/" + target.EventName(0)
	operation := `{"op":"copy","from":"/note","path":"/metadata/annotations"}`
	requests := [][]byte{
		e.Request("POST", e.Path(), "Content-Type: application/json\r\n", strings.Repeat(`{"a":`, 200_000)),
		e.Request("POST", e.Path(), "Content-Type: application/json\r\n", `{"note":`+strings.Repeat("[", 1<<20)),
		e.Request("POST", e.Path(), "Content-Type: application/yaml\r\n", aliases),
		e.Request("POST", e.Path(), "Content-Type: application/yaml\r\n", "a: ["+strings.Repeat("b,", 200_000)+"b]"),
		e.Request("PATCH", one, "Content-Type: application/merge-patch+json\r\n", `{"a":[`+strings.Repeat("1,", 200_000)+"1]}"),
		e.Request("POST", e.Path(), "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", zipped.String()),
		e.Request("PATCH", one, "Content-Type: application/json-patch+json\r\n", "["+strings.Repeat(operation+",", 10_000)+operation+"]"),
		e.Request("PATCH", one, "Content-Type: application/merge-patch+json\r\n", strings.Repeat(`{"a":`, 100_000)),
		e.All("GET", "?labelSelector="+strings.Repeat("a%21%3Db,", 800)+"a", target.JSONType),
	}
	return load.Spec{
		Addr: s.Services.API(), Conns: 16,
		Next:  func(dst []byte, i int) []byte { return append(dst, requests[i%len(requests)]...) },
		Check: load.OneOf(400, 413, 415, 422, 429),
	}, errors.Join(err, z.Close())
}

// The clients of SlowClients.
const (
	SlowSenders = 1000
	SlowReaders = 200
)

// SlowClients opens connections that send headers and bodies byte by byte, and others that
// ask for long lists and do not read them, until stop is called.
func SlowClients(ctx context.Context, s *Source) (stop func(), err error) {
	e, err := s.Services.EventsOf(ctx, s.Client, s.Namespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var slow sync.WaitGroup
	stop = func() {
		cancel()
		slow.Wait()
	}
	body := e.Request("POST", e.Path(), "Content-Type: application/json\r\n", strings.Repeat(" ", 1000))
	list := e.All("GET", "", target.JSONType)
	for i := range SlowSenders + SlowReaders {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Services.EventsAddr.String())
		if err != nil {
			stop()
			return nil, err
		}
		first, rest := list[:20], list[20:]
		switch {
		case i < SlowSenders/2:
			first, rest = body[:len(body)-1000], body[len(body)-1000:]
		case i >= SlowSenders:
			first, rest = list, nil
		}
		slow.Go(func() { trickle(ctx, conn, first, rest) })
	}
	return stop, nil
}

// trickle sends the rest at five bytes a second and reads nothing.
func trickle(ctx context.Context, conn net.Conn, first, rest []byte) {
	defer conn.Close()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	_, err := conn.Write(first)
	for ; err == nil && ctx.Err() == nil; <-tick.C {
		if len(rest) > 0 {
			_, err = conn.Write(rest[:1])
			rest = rest[1:]
		}
	}
}

// OpenWatches is how many Watches opens.
const OpenWatches = 10_000

// Watches opens watches of three clients, until stop is called.
func Watches(ctx context.Context, s *Source) (stop func(), err error) {
	var owners []*target.Events
	for i := range 3 {
		e, err := s.Services.EventsOf(ctx, s.Client+i, "watched")
		if err != nil {
			return nil, err
		}
		owners = append(owners, e)
	}
	revision, err := s.Services.Revision(ctx)
	if err != nil {
		return nil, err
	}
	l, err := load.NewLoop()
	if err != nil {
		return nil, err
	}
	n := 0
	_, err = l.NewAudience(load.WatchSpec{
		Addr: s.Services.API(), Watchers: OpenWatches, Revision: revision,
		Request: func(dst []byte, revision uint64) []byte { n++; return owners[n%3].Watch(dst, revision) },
	})
	if err != nil {
		l.Close()
		return nil, err
	}
	return l.Close, nil
}
