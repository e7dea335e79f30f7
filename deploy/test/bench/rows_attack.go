package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// attackStage has the rows of good clients while others attack the service. Its
// limits are the defaults. None of the good clients' requests may be refused.
func attackStage() stage {
	twice, beside := p99Of(2, "attack/none"), times("attack/none")
	return stage{
		name: "good clients while others attack",
		open: func(b *bench) error {
			return errors.Join(b.start(target.Options{}), b.up.Fill(b.ctx, tenThousand, 0, 10_000))
		},
		rows: []row{
			{name: "attack/none", run: attacked(nil)},
			{name: "attack/kids/floor", run: besideFloor(unknownKeys)},
			{name: "attack/kids", goal: twice, run: attackedByKeys, beside: beside},
			{name: "attack/flood/floor", run: besideFloor(flood)},
			{name: "attack/flood", goal: twice, run: attacked(flood), beside: beside},
			{name: "attack/bodies/floor", run: besideFloor(largeBodies)},
			{name: "attack/bodies", goal: twice, run: attacked(largeBodies), beside: beside},
			{name: "attack/bombs/floor", run: besideFloor(bombs)},
			{name: "attack/bombs", goal: twice, run: attacked(bombs), beside: beside},
			{name: "attack/slow", goal: twice, run: attackedSlowly, beside: beside},
			{name: "attack/watches", goal: twice, run: attackedByWatches, beside: beside},
		},
	}
}

// The good clients and their connections. Each sends its next request as soon
// as it is answered.
const (
	goodClients = 4
	goodConns   = 8
)

// attacker is who attacks: one client with a good token.
const attacker = goodClients

// goodSpec reads events, and creates one now and then.
func goodSpec(b *bench) (load.Spec, error) {
	var read, write []*target.Events
	for i := range goodClients {
		r, err1 := b.up.EventsOf(b.ctx, i, tenThousand)
		w, err2 := b.up.EventsOf(b.ctx, i, b.fresh(strings.ReplaceAll(b.current, "/", "-")))
		if err := errors.Join(err1, err2); err != nil {
			return load.Spec{}, err
		}
		read, write = append(read, r), append(write, w)
	}
	const oneIn = 5 // is a create
	return load.Spec{
		Addr: b.up.API(), Conns: goodConns,
		Next: func(dst []byte, i int) []byte {
			if i%oneIn == 0 {
				return write[i%goodClients].Create.Fill(dst, i)
			}
			return read[i%goodClients].Get.Fill(dst, scattered(i))
		},
		Check: func(i int, a *load.Answer) error {
			if i%oneIn == 0 {
				return load.Status(http.StatusCreated)(i, a)
			}
			return load.Status(http.StatusOK)(i, a)
		},
	}, nil
}

// attack makes the requests of an attacker.
type attack func(*bench) (load.Spec, error)

// attacked is a row of good clients beside an attack.
func attacked(by attack) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		spec, err := goodSpec(b)
		if err != nil {
			return nil, err
		}
		return besideAttack(b, by, b.eventsvc(), spec)
	}
}

// besideFloor is a row of clients that ask a server which does nothing, during
// an attack on eventsvc. It shows how long they wait for the processors alone;
// no service on this machine can do better during that attack.
func besideFloor(by attack) func(*bench) (*result, error) {
	return onFloor(floor.Hello, func(b *bench, p pid, addr netip.AddrPort) (*result, error) {
		spec := floor.HelloSpec(addr)
		spec.Conns = goodConns
		return besideAttack(b, by, p, spec)
	})
}

// besideAttack measures a load beside an attack on the service, if there is one.
func besideAttack(b *bench, by attack, measured pid, spec load.Spec) (*result, error) {
	if by == nil {
		return b.load(measured, "requests/s", spec)
	}
	bad, err := by(b)
	if err != nil {
		return nil, err
	}
	stop, err := load.Background(bad)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := b.load(measured, "requests/s", spec)
	done, attackErr := stop()
	if r != nil {
		r.notef("beside %.0f/s, sent by a thread of the lowest priority", float64(done)/time.Since(began).Seconds())
	}
	return r, errors.Join(err, attackErr)
}

// attackedByKeys sends up to 10,000 tokens a second, each with another key id,
// from 64 connections that wait for their answers. They may cause at most one
// fetch of the keys a second.
func attackedByKeys(b *bench) (*result, error) {
	before, err := b.up.KeyFetches(b.ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := attacked(unknownKeys)(b)
	if err != nil {
		return r, err
	}
	after, err := b.up.KeyFetches(b.ctx)
	if most := time.Since(began).Seconds() + 2; err == nil && after-before > most {
		err = fmt.Errorf("the keys were fetched %v times in %v", after-before, time.Since(began))
	}
	r.notef("%v fetches of the keys", after-before)
	return r, err
}

func unknownKeys(b *bench) (load.Spec, error) {
	encode := base64.RawURLEncoding.EncodeToString
	claims := encode([]byte(`{"iss":"http://` + b.up.TokenAddr.String() + `","sub":"x"}`))
	signature := strings.Repeat("A", 342)
	return load.Spec{
		Addr: b.up.API(), Conns: 64, Interval: 100 * time.Microsecond,
		Next: func(dst []byte, i int) []byte {
			header := encode([]byte(`{"alg":"RS256","kid":"unknown-` + strconv.Itoa(i) + `"}`))
			return append(dst, target.NewEvents("a", header+"."+claims+"."+signature, tenThousand).All("GET", "", target.JSONType)...)
		},
		Check: load.Status(http.StatusUnauthorized),
	}, nil
}

// flood asks for lists and creates from as many connections as a client may
// use.
func flood(b *bench) (load.Spec, error) {
	e, err := b.up.EventsOf(b.ctx, attacker, tenThousand)
	if err != nil {
		return load.Spec{}, err
	}
	own, err := b.up.EventsOf(b.ctx, attacker, b.fresh("by-"+strings.ReplaceAll(b.current, "/", "-")))
	return load.Spec{
		Addr: b.up.API(), Conns: 256,
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

// largeBodies sends events of 3 MiB.
func largeBodies(b *bench) (load.Spec, error) {
	e, err := b.up.EventsOf(b.ctx, attacker, "large")
	body := `{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 3<<20-1000) + `"}},"regarding":{"namespace":"large"},` +
		`"eventTime":"2026-01-02T03:04:05.000006Z","reportingController":"a.example/b","reportingInstance":"c","action":"d","reason":"e","type":"Normal"}`
	request := e.Request("POST", e.Path(), "Content-Type: "+target.JSONType+"\r\n", body)
	return load.Spec{
		Addr: b.up.API(), Conns: 8,
		Next:  func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: load.OneOf(422, 429),
	}, err
}

// bombs are requests that would cost much time or memory if they were processed
// without limits.
func bombs(b *bench) (load.Spec, error) {
	e, err := b.up.EventsOf(b.ctx, attacker, tenThousand)
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
		Addr: b.up.API(), Conns: 16,
		Next:  func(dst []byte, i int) []byte { return append(dst, requests[i%len(requests)]...) },
		Check: load.OneOf(400, 413, 415, 422, 429),
	}, errors.Join(err, z.Close())
}

// attackedSlowly has a thousand clients that send headers and bodies byte by
// byte, and two hundred that ask for long lists and do not read them.
func attackedSlowly(b *bench) (*result, error) {
	e, err := b.up.EventsOf(b.ctx, attacker, tenThousand)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(b.ctx)
	var slow sync.WaitGroup
	defer slow.Wait()
	defer stop()
	body := e.Request("POST", e.Path(), "Content-Type: application/json\r\n", strings.Repeat(" ", 1000))
	header := e.All("GET", "", target.JSONType)
	list := e.All("GET", "", target.JSONType)
	for i := range 1200 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.up.EventsAddr.String())
		if err != nil {
			return nil, err
		}
		first, rest := header[:20], header[20:]
		switch {
		case i < 500:
			first, rest = body[:len(body)-1000], body[len(body)-1000:]
		case i >= 1000:
			first, rest = list, nil
		}
		slow.Go(func() { trickle(ctx, conn, first, rest) })
	}
	r, err := attacked(nil)(b)
	if r != nil {
		r.notef("beside 1000 slow senders, 200 slow readers")
	}
	return r, err
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

// attackedByWatches has 10,000 open watches of three clients.
func attackedByWatches(b *bench) (*result, error) {
	const watches = 10_000
	var owners []*target.Events
	for i := range 3 {
		e, err := b.up.EventsOf(b.ctx, goodClients+i, "watched")
		if err != nil {
			return nil, err
		}
		owners = append(owners, e)
	}
	revision, err := b.up.Revision(b.ctx)
	if err != nil {
		return nil, err
	}
	l, err := load.NewLoop()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	n := 0
	_, err = l.NewAudience(load.WatchSpec{
		Addr: b.up.API(), Watchers: watches, Revision: revision,
		Request: func(dst []byte, revision uint64) []byte { n++; return owners[n%3].Watch(dst, revision) },
	})
	if err != nil {
		return nil, err
	}
	r, err := attacked(nil)(b)
	if r != nil {
		r.notef("beside %d open watches", watches)
	}
	return r, err
}
