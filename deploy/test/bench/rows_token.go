package main

import (
	"errors"
	"path/filepath"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// tokenStage has the rows of a token service that nobody attacks.
func tokenStage() stage {
	return stage{
		name: "tokens",
		open: func(b *bench) error { return b.start(target.Options{}) },
		rows: []row{
			{name: "start/tokensvc", goal: goal{text: "ready < 0.5 s", met: func(_ *bench, r *result) bool { return r.p50 < time.Second/2 }}, run: tokenStart},
			{name: "memory/tokensvc", goal: residentWithin(30 << 20), run: tokenMemory},
			{name: "tokens/1", goal: p50Within(1500 * time.Microsecond), run: tokens(1)},
			{name: "tokens/16", run: tokens(16)},
			{name: "tokens/64", goal: both(signingShare(.85), p99Within(60*time.Millisecond)), run: besideSigning(tokens(64))},
			{name: "jwks/64", goal: atLeast(40_000), run: jwks},
			{name: "tokens/million", long: true, once: true, goal: residentWithin(30 << 20), run: millionTokens},
			{name: "memory/tokensvc-after", goal: residentWithin(30 << 20), run: tokenMemory},
		},
	}
}

// postgresStage has the tokens for clients in a database.
func postgresStage() stage {
	return stage{
		name: "clients in PostgreSQL",
		open: startWithPostgres,
		rows: []row{{name: "tokens/postgres/64", goal: signingShare(.75), run: besideSigning(tokens(64))}},
	}
}

// startWithPostgres starts the services with the clients in PostgreSQL.
func startWithPostgres(b *bench) error {
	hashes, err := b.hashes()
	if err != nil {
		return err
	}
	// Not in b.tmp, which the server's user cannot enter.
	b.database, err = target.StartPostgres(b.ctx, b.dir, filepath.Join(b.tmp, "postgres.log"), hashes)
	if err != nil {
		return err
	}
	return b.start(target.Options{DSN: b.database.DSN})
}

// tokens is a row of tokens for clients whose secrets are stored as bcrypt
// hashes. The warm-up shows each secret once.
func tokens(conns int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		spec, err := workload.Tokens(b.ctx, b.up, conns)
		if err != nil {
			return nil, err
		}
		if err := firstTokens(spec); err != nil {
			return nil, err
		}
		return b.load(b.tokensvc(), "tokens/s", spec)
	}
}

// besideSigning is a row between two measurements of what signing alone takes,
// because a virtual machine's speed changes from one minute to the next.
func besideSigning(run func(*bench) (*result, error)) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		before, err := floor.Sign(b.duration)
		if err != nil {
			return nil, err
		}
		r, err := run(b)
		if err != nil {
			return r, err
		}
		after, err := floor.Sign(b.duration)
		if err != nil {
			return r, err
		}
		r.signing = (before.Rate() + after.Rate()) / 2
		r.notef("%.0f %% of signing: %.0f/s before, %.0f/s after", 100*r.rate/r.signing, before.Rate(), after.Rate())
		return r, nil
	}
}

// firstTokens asks once for each client, which costs a bcrypt compare.
func firstTokens(spec load.Spec) error {
	spec.Conns, spec.Limit, spec.Interval = 1, target.ClientCount, 0
	return load.Do(spec, time.Minute)
}

func jwks(b *bench) (*result, error) {
	return b.load(b.tokensvc(), "requests/s", workload.KeySets(b.up, 64))
}

// tokenStart is a row of one stop and start, with a new key.
func tokenStart(b *bench) (*result, error) {
	if err := b.up.Token.Stop(); err != nil {
		return nil, err
	}
	ready, err := b.up.StartToken(b.ctx)
	return &result{p50: ready}, err
}

// millionTokens asks for a million tokens, to see that memory does not grow
// with their number.
func millionTokens(b *bench) (*result, error) {
	spec, err := workload.Tokens(b.ctx, b.up, 16)
	if err != nil {
		return nil, err
	}
	l, err := load.NewLoop()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	spec.Limit = millionEvents
	ld, err := l.NewLoad(spec)
	if err != nil {
		return nil, err
	}
	r, early := &result{unit: "tokens/s"}, new(result)
	err = b.measure(r, b.tokensvc(), func() (int, error) {
		ld.Start()
		err1 := l.Run(30*time.Minute, func() bool { return ld.Asked() >= millionEvents/10 })
		err2 := early.space(b.tokensvc())
		err3 := l.Run(30*time.Minute, ld.Finished)
		return ld.Done, errors.Join(err1, err2, err3)
	})
	r.notef("%d tokens; RssAnon after the first tenth %.1f MiB", ld.Done, float64(early.memory.Anon)/(1<<20))
	r.quantiles(&ld.Latency)
	return r, errors.Join(err, ld.Failure)
}

func tokenMemory(b *bench) (*result, error) { return b.resting(b.tokensvc()) }
