package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
)

// attackStage has the rows of good clients while others attack the service. Its
// limits are the defaults. None of the good clients' requests may be refused.
func attackStage() stage {
	twice, beside := p99Of(2, "attack/none"), times("attack/none")
	return stage{
		name: "good clients while others attack",
		open: func(b *bench) error { return errors.Join(b.start(extra{}), b.fill(tenThousand, 0, 10_000)) },
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

// goodClients and their connections ask again as soon as they are answered.
const (
	goodClients = 4
	goodConns   = 8
)

// attacker is who attacks: one client with a good token.
var attacker = clientID(goodClients)

// eventsOf makes requests of one client.
func (b *bench) eventsOf(client, namespace string) (*events, error) {
	token, err := b.up.fetchTokenOf(b.ctx, client)
	if err != nil {
		return nil, err
	}
	return newEvents(b.up.eventsAddr.String(), token, namespace), nil
}

// goodSpec reads events, and creates one now and then.
func (b *bench) goodSpec() (load.Spec, error) {
	var read, write []*events
	for i := range goodClients {
		r, err1 := b.eventsOf(clientID(i), tenThousand)
		w, err2 := b.eventsOf(clientID(i), b.fresh(strings.ReplaceAll(b.current, "/", "-")))
		if err := errors.Join(err1, err2); err != nil {
			return load.Spec{}, err
		}
		read, write = append(read, r), append(write, w)
	}
	const oneIn = 5 // is a create
	return load.Spec{
		Addr: b.up.api(), Conns: goodConns,
		Next: func(dst []byte, i int) []byte {
			if i%oneIn == 0 {
				return write[i%goodClients].create.fill(dst, i)
			}
			return read[i%goodClients].get.fill(dst, scattered(i))
		},
		Check: func(i int, a *load.Answer) error {
			if i%oneIn == 0 {
				return load.Status(http.StatusCreated)(i, a)
			}
			return load.Status(http.StatusOK)(i, a)
		},
	}, nil
}

// attack is what an attacker asks.
type attack func(*bench) (load.Spec, error)

// attacked is a row of good clients beside an attack.
func attacked(by attack) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		spec, err := b.goodSpec()
		if err != nil {
			return nil, err
		}
		return b.beside(by, b.eventsvc(), spec)
	}
}

// besideFloor is a row of clients who ask another server of this machine, one
// that does nothing, beside an attack on the service: what they wait for is the
// processors. What they wait for in the service's row, the machine forbids.
func besideFloor(by attack) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		p, addr, err := b.startFloor(floor.Hello)
		if err != nil {
			return nil, err
		}
		spec := helloSpec(addr)
		spec.Conns = goodConns
		r, err := b.beside(by, pid{pid: p.PID()}, spec)
		return r, errors.Join(err, stopFloor(p))
	}
}

// beside measures a load beside an attack on the service, if there is one.
func (b *bench) beside(by attack, measured pid, spec load.Spec) (*result, error) {
	if by == nil {
		return b.load(measured, "requests/s", spec)
	}
	bad, err := by(b)
	if err != nil {
		return nil, err
	}
	stop, err := background(bad)
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

// background puts load on a server until it is stopped. It has a thread of its
// own, so that the figures of others do not wait for it, and that of the lowest
// priority: an attacker's processors are not those of the server, so that its
// work takes none from the good clients, only what it causes in the server does.
func background(spec load.Spec) (stop func() (done int, err error), err error) {
	l, err := load.NewLoop()
	if err != nil {
		return nil, err
	}
	ld, err := l.NewLoad(spec)
	if err != nil {
		l.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ld.Start()
	go func() {
		runtime.LockOSThread()
		err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
		if err == nil {
			err = l.Run(5*time.Minute, func() bool { return ctx.Err() != nil })
		}
		ended <- err
		select {} // the thread is good for nothing else, and services that it has started would end with it
	}()
	return func() (int, error) {
		defer l.Close()
		cancel()
		err := <-ended // the next answer wakes it
		return ld.Done, errors.Join(err, ld.Drain(), ld.Failure)
	}, nil
}

// oneOf is a Check for answers with one of a few codes.
func oneOf(codes ...int) func(int, *load.Answer) error {
	return func(_ int, a *load.Answer) error {
		for _, code := range codes {
			if a.Status == code {
				return nil
			}
		}
		return fmt.Errorf("status %d, want one of %v: %.300s", a.Status, codes, a.Body)
	}
}

// attackedByKeys sends up to 10,000 tokens a second, each with a key id of its
// own, from 64 connections that wait for their answers: fewer where the service
// lets these wait. They may cause one fetch of the keys a second.
func attackedByKeys(b *bench) (*result, error) {
	before, err := b.fetches()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := attacked(unknownKeys)(b)
	if err != nil {
		return r, err
	}
	after, err := b.fetches()
	if most := time.Since(began).Seconds() + 2; err == nil && after-before > most {
		err = fmt.Errorf("the keys were fetched %v times in %v", after-before, time.Since(began))
	}
	r.notef("%v fetches of the keys", after-before)
	return r, err
}

func unknownKeys(b *bench) (load.Spec, error) {
	encode := base64.RawURLEncoding.EncodeToString
	claims := encode([]byte(`{"iss":"http://` + b.up.tokenAddr.String() + `","sub":"x"}`))
	signature := strings.Repeat("A", 342)
	return load.Spec{
		Addr: b.up.api(), Conns: 64, Interval: 100 * time.Microsecond,
		Next: func(dst []byte, i int) []byte {
			header := encode([]byte(`{"alg":"RS256","kid":"unknown-` + strconv.Itoa(i) + `"}`))
			return append(dst, newEvents("a", header+"."+claims+"."+signature, tenThousand).all("GET", "", jsonType)...)
		},
		Check: load.Status(http.StatusUnauthorized),
	}, nil
}

// fetches is how often the keys have been fetched.
func (b *bench) fetches() (float64, error) {
	req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, b.up.eventsAdmin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, line := range regexp.MustCompile(`(?m)^jwks_fetches_total\{.*\} (\S+)$`).FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(line[1]), 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// flood asks for lists and creates from as many connections as a client may
// use.
func flood(b *bench) (load.Spec, error) {
	e, err := b.eventsOf(attacker, tenThousand)
	if err != nil {
		return load.Spec{}, err
	}
	own, err := b.eventsOf(attacker, b.fresh("by-"+strings.ReplaceAll(b.current, "/", "-")))
	return load.Spec{
		Addr: b.up.api(), Conns: 256,
		Next: func(dst []byte, i int) []byte {
			if i%2 == 0 {
				return own.create.fill(dst, i)
			}
			return append(dst, e.all("GET", "?limit=100", jsonType)...)
		},
		Keep:  func(int) bool { return false },
		Check: oneOf(200, 201, 429),
	}, err
}

// largeBodies sends events of 3 MiB.
func largeBodies(b *bench) (load.Spec, error) {
	e, err := b.eventsOf(attacker, "large")
	body := `{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 3<<20-1000) + `"}},"regarding":{"namespace":"large"},` +
		`"eventTime":"2026-01-02T03:04:05.000006Z","reportingController":"a.example/b","reportingInstance":"c","action":"d","reason":"e","type":"Normal"}`
	request := e.request("POST", e.path(), "Content-Type: "+jsonType+"\r\n", body)
	return load.Spec{
		Addr: b.up.api(), Conns: 8,
		Next:  func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: oneOf(422, 429),
	}, err
}

// bombs are small or large requests that would cost much if they were believed.
func bombs(b *bench) (load.Spec, error) {
	e, err := b.eventsOf(attacker, tenThousand)
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
	one := e.path() + "/" + eventName(0)
	operation := `{"op":"copy","from":"/note","path":"/metadata/annotations"}`
	requests := [][]byte{
		e.request("POST", e.path(), "Content-Type: application/json\r\n", strings.Repeat(`{"a":`, 200_000)),
		e.request("POST", e.path(), "Content-Type: application/json\r\n", `{"note":`+strings.Repeat("[", 1<<20)),
		e.request("POST", e.path(), "Content-Type: application/yaml\r\n", aliases),
		e.request("POST", e.path(), "Content-Type: application/yaml\r\n", "a: ["+strings.Repeat("b,", 200_000)+"b]"),
		e.request("PATCH", one, "Content-Type: application/merge-patch+json\r\n", `{"a":[`+strings.Repeat("1,", 200_000)+"1]}"),
		e.request("POST", e.path(), "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", zipped.String()),
		e.request("PATCH", one, "Content-Type: application/json-patch+json\r\n", "["+strings.Repeat(operation+",", 10_000)+operation+"]"),
		e.request("PATCH", one, "Content-Type: application/merge-patch+json\r\n", strings.Repeat(`{"a":`, 100_000)),
		e.all("GET", "?labelSelector="+strings.Repeat("a%21%3Db,", 800)+"a", jsonType),
	}
	return load.Spec{
		Addr: b.up.api(), Conns: 16,
		Next:  func(dst []byte, i int) []byte { return append(dst, requests[i%len(requests)]...) },
		Check: oneOf(400, 413, 415, 422, 429),
	}, errors.Join(err, z.Close())
}

// attackedSlowly has a thousand clients that send headers and bodies byte by
// byte, and two hundred that ask for long lists and do not read them.
func attackedSlowly(b *bench) (*result, error) {
	e, err := b.eventsOf(attacker, tenThousand)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(b.ctx)
	var slow sync.WaitGroup
	defer slow.Wait()
	defer stop()
	body := e.request("POST", e.path(), "Content-Type: application/json\r\n", strings.Repeat(" ", 1000))
	header := e.all("GET", "", jsonType)
	list := e.all("GET", "", jsonType)
	for i := range 1200 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.up.eventsAddr.String())
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
	var owners []*events
	for i := range 3 {
		e, err := b.eventsOf(clientID(goodClients+i), "watched")
		if err != nil {
			return nil, err
		}
		owners = append(owners, e)
	}
	token, err := b.up.fetchToken(b.ctx)
	if err != nil {
		return nil, err
	}
	revision, err := b.up.revision(b.ctx, token, "watched")
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
		Addr: b.up.api(), Watchers: watches, Revision: revision,
		Request: func(dst []byte, revision uint64) []byte { n++; return owners[n%3].watch(dst, revision) },
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
