package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tidings.example/deploy/test/bench/internal/attack"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// assertionStage has the tokens of clients without secrets: those that sign assertions with keys of their own, by each
// algorithm, and those that send the service-account token that they have anyway.
func assertionStage() stage {
	var signers *target.Signers
	row1 := func(name, alg string, share float64) row {
		return row{name: name, goal: signingShare(share), run: besideSigning(func(b *bench) (*result, error) { return assertions(b, signers, alg, 64, false) })}
	}
	return stage{
		name: "clients without secrets",
		open: func(b *bench) (err error) { signers, err = startTrusting(b); return err },
		rows: []row{
			row1("assert/rs256/64", target.RS256, .6),
			row1("assert/es256/64", target.ES256, .8),
			row1("assert/eddsa/64", target.EdDSA, .8),
			{name: "assert/federated/64", goal: signingShare(.8), run: besideSigning(func(b *bench) (*result, error) { return accounts(b, signers) })},
			{name: "assert/alone", run: func(b *bench) (*result, error) { return assertions(b, signers, target.ES256, 16, false) }},
			{name: "assert/attacked", goal: p99Of(2, "assert/alone"), run: func(b *bench) (*result, error) { return assertions(b, signers, target.ES256, 16, true) }},
		},
	}
}

// assertionTimingStage measures whether the time of an answer reveals which client ids exist.
func assertionTimingStage() stage {
	return stage{
		name: "timing of assertions",
		open: func(b *bench) error { _, err := startTrusting(b, "--failure-refill=0s"); return err },
		rows: []row{{name: "timing/auc-assertions", goal: evenOdds(.05), run: func(b *bench) (*result, error) {
			return compareTimes(b, 2000, func(i int, known bool) []byte {
				if known {
					return b.up.ForgedRequest(target.SignerID(target.RS256, i))
				}
				return b.up.ForgedRequest(fmt.Sprintf("other-client-%02d", i%target.ClientCount))
			}, nil)
		}}},
	}
}

// startTrusting starts the services with clients that have keys, and those of a trusted issuer.
func startTrusting(b *bench, more ...string) (*target.Signers, error) {
	signers, err := target.NewSigners()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.tmp, "signers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	options, err := signers.Options(dir)
	if err != nil {
		return nil, err
	}
	options.Token = append(options.Token, more...)
	return signers, b.start(options)
}

// mostTokens is more than any machine issues in a second.
const mostTokens = 4000

// assertions is a row of tokens for clients that sign assertions, alone or while others send forged ones.
func assertions(b *bench, signers *target.Signers, alg string, conns int, attacked bool) (*result, error) {
	spec, err := workload.Assertions(b.ctx, b.up, signers, alg, conns, int((b.duration+2*time.Second)/time.Second)*mostTokens)
	if err != nil {
		return nil, err
	}
	var others []load.Spec
	if attacked {
		others = append(others, attack.Forgeries(b.up))
	}
	r, err := b.load(b.tokensvc(), "tokens/s", spec, others...)
	if err == nil && r.rate > mostTokens {
		err = errors.New("more tokens than assertions were made for")
	}
	return r, err
}

// accounts is a row of tokens for clients that send a service-account token again and again.
func accounts(b *bench, signers *target.Signers) (*result, error) {
	spec, err := workload.Accounts(b.ctx, b.up, signers, 64)
	if err != nil {
		return nil, err
	}
	return b.load(b.tokensvc(), "tokens/s", spec)
}
