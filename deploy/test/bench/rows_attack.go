package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"tidings.example/deploy/test/bench/internal/attack"
	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// attackStage has the rows of good clients while others attack the service. Its
// limits are the defaults. None of the good clients' requests may be refused.
func attackStage() stage {
	twice, beside := p99Of(2, "attack/none"), timesAlone("attack/none")
	return stage{
		name: "good clients while others attack",
		open: func(b *bench) error {
			return errors.Join(b.start(target.Options{}), b.up.Fill(b.ctx, tenThousand, 0, 10_000))
		},
		rows: []row{
			{name: "attack/none/floor", run: besideFloor(nil)},
			{name: "attack/none", run: attacked(nil)},
			{name: "attack/kids/floor", run: besideFloor(attack.UnknownKeys)},
			{name: "attack/kids", goal: twice, run: attackedByKeys, beside: beside},
			{name: "attack/flood/floor", run: besideFloor(attack.Flood)},
			{name: "attack/flood", goal: twice, run: attacked(attack.Flood), beside: beside},
			{name: "attack/bodies/floor", run: besideFloor(attack.LargeBodies)},
			{name: "attack/bodies", goal: twice, run: attacked(attack.LargeBodies), beside: beside},
			{name: "attack/bombs/floor", run: besideFloor(attack.Bombs)},
			{name: "attack/bombs", goal: twice, run: attacked(attack.Bombs), beside: beside},
			{name: "attack/backdated/floor", run: besideFloor(attack.Backdated)},
			{name: "attack/backdated", goal: twice, run: attacked(attack.Backdated), beside: beside},
			{name: "attack/slow", goal: twice, run: attackedBy(attack.SlowClients, fmt.Sprintf("%d slow senders, %d slow readers", attack.SlowSenders, attack.SlowReaders)), beside: beside},
			{name: "attack/expressions/floor", run: floorBeside(attack.Expressions)},
			{name: "attack/expressions", goal: twice, run: stoppedBy(attack.Expressions, fmt.Sprintf("%d clients that leave after 2 s", attack.ExpressionClients)), beside: beside},
			{name: "attack/tails/floor", run: floorBeside(attack.Tails)},
			{name: "attack/tails", goal: twice, run: stoppedBy(attack.Tails, fmt.Sprintf("%d clients that open tails", attack.OpenTails)), beside: beside},
			{name: "attack/unread", goal: twice, run: boundedBy(attack.Unread, fmt.Sprintf("%d answers that nobody reads", attack.UnreadAnswers)), beside: beside},
			{name: "attack/questions/floor", run: besideFloor(attack.Questions)},
			{name: "attack/questions", goal: twice, run: within(containerMemory, attacked(attack.Questions)), beside: beside},
			{name: "attack/starts/floor", run: floodedBy(attack.Starts, attackSource, besideFloor(nil))},
			{name: "attack/starts", goal: twice, run: within(containerMemory, floodedBy(attack.Starts, attackSource, attacked(nil))), beside: beside},
			{name: "attack/watches", goal: twice, run: attackedBy(attack.Watches, fmt.Sprintf("%d open watches", attack.OpenWatches)), beside: beside},
		},
	}
}

// strangeRemark says what [attack.Strangers] do.
var strangeRemark = fmt.Sprintf("%d connections with %d streams each, whose answers nobody reads", attack.StrangeConns, attack.StrangeStreams)

// strangersStage has the rows of good clients while others attack who have no token, over HTTPS.
func strangersStage() stage {
	s := stage{
		name: "good clients over HTTPS while others attack without a token",
		open: func(b *bench) error {
			return errors.Join(b.start(target.Options{Secure: true}), b.up.Fill(b.ctx, tenThousand, 0, 10_000))
		},
		rows: []row{
			{name: "attack/secure/none", run: attacked(nil)},
			{
				name: "attack/anonymous", goal: p99Of(2, "attack/secure/none"), beside: timesAlone("attack/secure/none"),
				run: boundedBy(attack.Strangers, strangeRemark),
			},
		},
	}
	floods := []flood{
		{"attack/handshakes", attack.Handshakes}, {"attack/resets", attack.Resets}, {"attack/pings", attack.Pings},
		{"attack/settings", attack.Settings}, {"attack/malformed", attack.Malformed},
	}
	s.rows = append(s.rows, besideFloods(floods, "attack/secure/none", attackSource, attacked(nil), containerMemory)...)
	return s
}

// tokenStrangersStage has the rows of good clients of the token service while others attack that without a secret.
func tokenStrangersStage() stage {
	s := stage{
		name: "tokens over HTTPS while others attack without a secret",
		open: func(b *bench) error { return b.start(target.Options{Secure: true}) },
		rows: []row{
			{name: "attack/tokens/none", run: tokens(goodConns)},
			{
				name: "attack/tokens/anonymous", goal: p99Of(2, "attack/tokens/none"), beside: timesAlone("attack/tokens/none"),
				run: within(tokenContainerMemory, besideClients(tokenStrangers, tokens(goodConns), strangeRemark, func(*bench, *result) error { return nil })),
			},
		},
	}
	floods := []flood{
		{"attack/tokens/handshakes", attack.Handshakes}, {"attack/tokens/resets", attack.Resets}, {"attack/tokens/pings", attack.Pings},
		{"attack/tokens/settings", attack.Settings}, {"attack/tokens/malformed", attack.Malformed},
	}
	s.rows = append(s.rows, besideFloods(floods, "attack/tokens/none", tokenSource, tokens(goodConns), tokenContainerMemory)...)
	return s
}

// tokenSource is an [attackSource] that attacks the token service.
func tokenSource(b *bench) *attack.Source {
	s := attackSource(b)
	s.Tokens = true
	return s
}

// tokenStrangers are [attack.Strangers] that attack the token service.
func tokenStrangers(ctx context.Context, s *attack.Source) (stop func(), err error) {
	s.Tokens = true
	return attack.Strangers(ctx, s)
}

// flood is the name of the row beside a flood.
type flood struct {
	name string
	of   attack.Flooding
}

// besideFloods returns two rows for each flood: its floor, and good clients of a service that keeps to its memory.
func besideFloods(floods []flood, alone string, source func(*bench) *attack.Source, good func(*bench) (*result, error), memory int64) (rows []row) {
	for _, f := range floods {
		rows = append(rows,
			row{name: f.name + "/floor", run: floodedBy(f.of, source, besideFloor(nil))},
			row{name: f.name, goal: p99Of(2, alone), beside: timesAlone(alone), run: within(memory, floodedBy(f.of, source, good))})
	}
	return rows
}

// floodedBy is a row beside a flood, which begins and ends with it.
func floodedBy(flood attack.Flooding, source func(*bench) *attack.Source, run func(*bench) (*result, error)) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		began := time.Now()
		stop, err := flood.Begin(b.ctx, source(b))
		if err != nil {
			return nil, err
		}
		r, err := run(b)
		sent, attackErr := stop()
		if r != nil {
			r.notef("beside %.0f/s over %d connections, sent by a process of the lowest priority", float64(sent)/time.Since(began).Seconds(), flood.Conns)
		}
		return r, errors.Join(err, attackErr)
	}
}

// within is a row during which the service must have kept to the memory of its container.
func within(memory int64, run func(*bench) (*result, error)) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		r, err := run(b)
		if err == nil {
			err = r.bounded(memory)
		}
		return r, err
	}
}

// bounded returns an error if the process has taken more memory than its container has.
func (r *result) bounded(memory int64) error {
	r.notef("at most %d MiB resident", r.memory.Peak>>20)
	if most := max(r.memory.Anon, r.memory.Peak-r.memory.File); most > memory {
		return fmt.Errorf("the service has taken %d MiB", most>>20)
	}
	return nil
}

// The good clients and their connections. Each sends its next request as soon
// as it is answered.
const (
	goodClients = 4
	goodConns   = 8
)

// attacked is a row of good clients beside an attack.
func attacked(by attack.Make) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		spec, err := workload.Mixed(b.ctx, b.up, goodClients, goodConns, tenThousand, b.fresh(strings.ReplaceAll(b.current, "/", "-")))
		if err != nil {
			return nil, err
		}
		return besideAttack(b, by, b.eventsvc(), spec)
	}
}

// besideFloor is a row of clients that ask a server which does nothing, during
// an attack on eventsvc. It shows how long they wait for the processors alone;
// no service on this machine can do better during that attack.
func besideFloor(by attack.Make) func(*bench) (*result, error) {
	return onFloor(floor.Hello, func(b *bench, p pid, addr netip.AddrPort) (*result, error) {
		spec := floor.HelloSpec(addr)
		spec.Conns = goodConns
		return besideAttack(b, by, p, spec)
	})
}

// besideAttack measures a load beside an attack on the service, if there is one.
func besideAttack(b *bench, by attack.Make, measured pid, spec load.Spec) (*result, error) {
	if by == nil {
		return b.load(measured, "requests/s", spec)
	}
	bad, err := by(b.ctx, attackSource(b))
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

// attackedByKeys is a row beside tokens with unknown key ids, which may cause at
// most one fetch of the keys a second.
func attackedByKeys(b *bench) (*result, error) {
	before, err := b.up.KeyFetches(b.ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := attacked(attack.UnknownKeys)(b)
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

// attackSource is who attacks: clients that are not among the good ones.
func attackSource(b *bench) *attack.Source {
	return &attack.Source{
		Services: b.up, Client: goodClients, Namespace: tenThousand,
		Own: b.fresh("by-" + strings.ReplaceAll(b.current, "/", "-")),
	}
}

// begins begins what clients with connections of their own do, until stop is called.
type begins func(context.Context, *attack.Source) (stop func(), err error)

// attackedBy is a row beside clients that hold connections, which begin and end with it.
func attackedBy(begin begins, remark string) func(*bench) (*result, error) {
	return besideClients(begin, attacked(nil), remark, func(*bench, *result) error { return nil })
}

// floorBeside is besideFloor for clients that hold connections. What they cost shows in how
// much longer the floor's clients wait than those of attack/none/floor.
func floorBeside(begin begins) func(*bench) (*result, error) {
	return besideClients(begin, besideFloor(nil), "the attack on eventsvc", func(*bench, *result) error { return nil })
}

// stoppedBy is attackedBy for an attack during which the service is then stopped: it must
// not need more than stopTimeout.
func stoppedBy(begin begins, remark string) func(*bench) (*result, error) {
	return besideClients(begin, attacked(nil), remark, stops)
}

// boundedBy is stoppedBy for an attack on the memory: the service must keep to the limit of
// its container.
func boundedBy(begin begins, remark string) func(*bench) (*result, error) {
	return besideClients(begin, attacked(nil), remark, func(b *bench, r *result) error {
		return errors.Join(r.bounded(containerMemory), stops(b, r))
	})
}

// The limits of eventsvc and of tokensvc in docker-compose.yml.
const (
	containerMemory      = 512 << 20
	tokenContainerMemory = 128 << 20
)

// stops stops the service and starts it again. The stop must be within its timeout.
func stops(b *bench, r *result) error {
	began := time.Now()
	ready, err := b.up.RestartEvents(b.ctx, false)
	stop := time.Since(began) - ready
	if r.notef("stopped in %.1f s", stop.Seconds()); err == nil && stop > stopTimeout+2*time.Second { // which the process needs to end
		err = fmt.Errorf("the service stopped in %v, more than %v", stop, stopTimeout)
	}
	return err
}

// stopTimeout is the timeout of a graceful stop that both services have (shared/service).
const stopTimeout = 20 * time.Second

// besideClients is a row beside clients that hold connections. After run has measured it, and
// before they end, it calls then.
func besideClients(begin begins, run func(*bench) (*result, error), remark string, then func(*bench, *result) error) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		stop, err := begin(b.ctx, attackSource(b))
		if err != nil {
			return nil, err
		}
		defer stop()
		r, err := run(b)
		if r != nil {
			r.notef("beside %s", remark)
		}
		if err == nil {
			err = then(b, r)
		}
		return r, err
	}
}
