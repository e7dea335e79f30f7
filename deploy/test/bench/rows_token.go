package main

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/stats"
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
			{name: "tokens/64", goal: both(aloneShare(.85, "signing"), p99Within(60*time.Millisecond)), run: besideSigning(rememberedTokens(64))},
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
		open: func(b *bench) error {
			if err := b.startPostgres(); err != nil {
				return err
			}
			return b.start(target.Options{DSN: b.database.DSN})
		},
		rows: []row{{name: "tokens/postgres/64", goal: aloneShare(.75, "signing"), run: besideSigning(rememberedTokens(64))}},
	}
}

// startPostgres starts the database of a stage, with the clients in it.
func (b *bench) startPostgres() error {
	hashes, err := b.hashes()
	if err != nil {
		return err
	}
	// Not in b.tmp, which the server's user cannot enter.
	b.database, err = target.StartPostgres(b.ctx, b.dir, filepath.Join(b.tmp, "postgres.log"), hashes)
	return err
}

// tokens is a row of tokens for clients whose secrets are stored as bcrypt hashes.
func tokens(conns int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		spec, err := rememberedTokens(conns)(b)
		if err != nil {
			return nil, err
		}
		return b.load(b.tokensvc(), "tokens/s", spec)
	}
}

// rememberedTokens asks for tokens, after a warm-up that shows each secret once.
func rememberedTokens(conns int) func(*bench) (load.Spec, error) {
	return func(b *bench) (load.Spec, error) {
		spec, err := workload.Tokens(b.ctx, b.up, conns)
		if err != nil {
			return spec, err
		}
		return spec, workload.FirstTokens(spec)
	}
}

// A row of tokens, and signing alone, are measured in turn for a slice.
const (
	slice       = 500 * time.Millisecond
	sliceWarmUp = 100 * time.Millisecond
)

// besideSigning is a row that is measured in slices, with signing alone measured between them, because a virtual
// machine's speed changes by a third from one minute to the next. The median slice counts.
func besideSigning(open func(*bench) (load.Spec, error)) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		spec, err := open(b)
		if err != nil {
			return nil, err
		}
		l, err := load.NewLoop()
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ld, err := l.NewLoad(spec)
		if err != nil {
			return nil, err
		}
		before, err := floor.Sign(slice)
		if err != nil {
			return nil, err
		}
		var parts []*result
		var latency stats.Histogram
		for len(parts) < max(2, int(b.duration/slice)) {
			part, err := b.slice(l, ld)
			if err != nil {
				return part, err
			}
			latency.Merge(&ld.Latency)
			after, err := floor.Sign(slice)
			if err != nil {
				return part, err
			}
			part.alone = (before.Rate() + after.Rate()) / 2
			parts, before = append(parts, part), after
		}
		r := joined(parts)
		r.quantiles(&latency)
		return r, ld.Failure
	}
}

// slice measures a load of tokens for a slice of its row.
func (b *bench) slice(l *load.Loop, ld *load.Load) (*result, error) {
	ld.Start()
	if err := l.Run(sliceWarmUp, nil); err != nil {
		return nil, err
	}
	ld.Reset()
	r := new(result)
	err := b.measure(r, b.tokensvc(), func() (int, error) {
		err := l.Run(slice, nil)
		return ld.Done, err
	})
	if err = errors.Join(err, ld.Drain()); err == nil && ld.Finished() {
		err = errTooFew
	}
	return r, err
}

// joined is the row of slices: its rate is the median, and its share of signing the median of their shares.
func joined(parts []*result) *result {
	r := &result{unit: "tokens/s", memory: parts[len(parts)-1].memory}
	var rates, shares []float64
	for _, p := range parts {
		rates, shares = append(rates, p.rate), append(shares, p.rate/p.alone)
		r.serverCPU += p.serverCPU / time.Duration(len(parts))
		r.clientCPU += p.clientCPU / time.Duration(len(parts))
		r.foreign += p.foreign / float64(len(parts))
	}
	share := stats.Median(shares)
	r.rate = stats.Median(rates)
	r.alone = r.rate / share
	r.notef("%.0f %% of signing, %.0f to %.0f in %d slices", 100*share, 100*slices.Min(shares), 100*slices.Max(shares), len(parts))
	return r
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
