package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"tidings.example/deploy/test/bench/internal/attack"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/stats"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// guessStage has the rows of good clients, alone and while others guess.
func guessStage() stage {
	return stage{
		name: "good clients while others guess",
		open: func(b *bench) error { return b.start(target.Options{}) },
		rows: []row{
			{name: "guess/alone", run: good(0, false)},
			{name: "guess/attacked", goal: both(rateOf(.5, "guess/alone"), p99Of(2, "guess/alone")), run: good(0, true)},
			{name: "guess/alone-200ps", run: good(5*time.Millisecond, false)},
			{name: "guess/attacked-200ps", goal: p99Of(2, "guess/alone-200ps"), run: good(5*time.Millisecond, true)},
			{name: "guess/statuses", once: true, goal: goal{text: "equal", met: func(_ *bench, r *result) bool { return r.rate == 1 }}, run: statuses},
		},
	}
}

// timingStage measures whether the time of an answer reveals which client ids
// exist, alone and while others guess.
func timingStage() stage {
	return stage{
		name: "timing",
		open: func(b *bench) error { return b.start(target.Options{Token: []string{"--failure-refill=0s"}}) },
		rows: []row{
			{name: "timing/auc", goal: evenOdds(.05), run: timing(100, 2000)},
			{name: "timing/auc-in-line", long: true, once: true, goal: evenOdds(.1), run: timing(0, 150, attack.QueuedGuesses)},
		},
	}
}

// evenOdds asks for times that do not tell one kind of request from the other.
func evenOdds(margin float64) goal {
	return goal{text: fmt.Sprintf("AUC 0.5 ± %.2f", margin), met: func(_ *bench, r *result) bool { return math.Abs(r.rate-.5) <= margin }}
}

// good is a row of clients with the right secrets: 16 connections, each
// asking again at once, or at a fixed rate.
func good(interval time.Duration, attacked bool) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		spec, err := workload.Tokens(b.ctx, b.up, 16)
		if err != nil {
			return nil, err
		}
		if err := workload.FirstTokens(spec); err != nil {
			return nil, err
		}
		spec.Interval = interval
		if !attacked {
			return b.load(b.tokensvc(), "tokens/s", spec)
		}
		return b.load(b.tokensvc(), "tokens/s", spec, attack.Guesses(b.up))
	}
}

// statuses sends more guesses at once than may wait, for a client and for an id
// that does not exist. It compares how often each status is the answer.
func statuses(b *bench) (*result, error) {
	wrong, err1 := workload.RefusalsAtOnce(b.up, target.ClientID(1))
	unknown, err2 := workload.RefusalsAtOnce(b.up, "nobody")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	r := new(result)
	if wrong == unknown {
		r.rate = 1
	}
	r.unit = "equal"
	r.notef("wrong secrets: %s; unknown ids: %s", wrong, unknown)
	return r, nil
}

// timing compares the times of a wrong secret and of an unknown client, asked
// in random order on one connection.
func timing(samples, long int, others ...func(*target.Services) load.Spec) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		request := func(i int, known bool) []byte {
			client := target.ClientID(i)
			if !known {
				client = fmt.Sprintf("other-client-%02d", i%target.ClientCount)
			}
			return b.up.TokenRequest(client, "wrong-"+target.ClientSecret)
		}
		if b.long {
			return compareTimes(b, long, request, others)
		}
		return compareTimes(b, samples, request, others)
	}
}

// compareTimes compares the times of the requests i of clients that are known with those of clients that are not.
func compareTimes(b *bench, samples int, request func(i int, known bool) []byte, others []func(*target.Services) load.Spec) (*result, error) {
	l, err := load.NewLoop()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	var times [2][]time.Duration
	ld, err := l.NewLoad(workload.Refusals(b.up, samples, request, &times))
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		guesses, err := l.NewLoad(other(b.up))
		if err != nil {
			return nil, err
		}
		guesses.Start()
	}
	r := new(result)
	err = b.measure(r, b.tokensvc(), func() (int, error) {
		ld.Start()
		return 2 * samples, l.Run(30*time.Minute, ld.Finished)
	})
	if err == nil && !ld.Finished() {
		err = errors.New("not all answered after half an hour")
	}
	if err := errors.Join(err, ld.Failure); err != nil {
		return r, err
	}
	r.rate, r.unit = stats.AUC(times[0], times[1]), "AUC"
	r.quantiles(&ld.Latency)
	r.notef("medians %v and %v; %d samples each; 0.5 ± %.2f is noise with so many", stats.Median(times[0]), stats.Median(times[1]), samples, 2/math.Sqrt(6*float64(samples)))
	return r, nil
}
