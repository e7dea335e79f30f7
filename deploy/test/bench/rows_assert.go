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
		return row{name: name, goal: aloneShare(share, "signing"), run: besideSigning(func(b *bench) (load.Spec, error) { return assertions(b, signers, alg, 64) })}
	}
	return stage{
		name: "clients without secrets",
		open: func(b *bench) (err error) { signers, err = startTrusting(b); return err },
		rows: []row{
			row1("assert/rs256/64", target.RS256, .6),
			row1("assert/es256/64", target.ES256, .8),
			row1("assert/eddsa/64", target.EdDSA, .8),
			{name: "assert/federated/64", goal: aloneShare(.8, "signing"), run: besideSigning(func(b *bench) (load.Spec, error) { return workload.Accounts(b.ctx, b.up, signers, 64) })},
			{name: "assert/alone", run: func(b *bench) (*result, error) { return beside(b, signers) }},
			{name: "assert/attacked", goal: p99Of(2, "assert/alone"), run: func(b *bench) (*result, error) { return beside(b, signers, attack.Forgeries(b.up)) }},
		},
	}
}

// assertionTimingStage measures whether the time of a refusal reveals which client ids exist, or which issuers are
// trusted.
func assertionTimingStage() stage {
	var signers *target.Signers
	nobody := func(i int) string { return fmt.Sprintf("other-client-%02d", i%target.ClientCount) }
	own := func(alg, name string) row {
		return timingRow("timing/auc-assertions/"+name, func(b *bench, i int, known bool) ([]byte, error) {
			id := nobody(i)
			if known {
				id = target.SignerID(alg, i)
			}
			return b.up.ForgedRequest(alg, "", id, id), nil
		})
	}
	issuers := map[bool]string{true: target.ClusterIssuer, false: "https://another.example"} // by whether it is trusted
	fromIssuer := func(b *bench, i int, issuer, kid string) []byte {
		return b.up.ForgedRequest(target.RS256, kid, issuer, target.AccountID(i))
	}
	return stage{
		name: "timing of assertions",
		open: func(b *bench) (err error) { signers, err = startTrusting(b, "--failure-refill=0s"); return err },
		rows: []row{
			own(target.RS256, "rs256"), own(target.ES256, "es256"), own(target.EdDSA, "eddsa"),
			timingRow("timing/auc-issuers/signature", func(b *bench, i int, known bool) ([]byte, error) { return fromIssuer(b, i, issuers[known], "k"), nil }),
			timingRow("timing/auc-issuers/kid", func(b *bench, i int, known bool) ([]byte, error) {
				return fromIssuer(b, i, issuers[known], "another"), nil
			}),
			timingRow("timing/auc-issuers/client", func(b *bench, i int, known bool) ([]byte, error) {
				if known {
					return fromIssuer(b, i, target.ClusterIssuer, "k"), nil
				}
				return signers.AccountRequest(b.up, nobody(i))
			}),
		},
	}
}

// timingRow is a row that compares the times of two kinds of refused requests, which are made before.
func timingRow(name string, request func(b *bench, i int, known bool) ([]byte, error)) row {
	const samples = 2000
	return row{name: name, goal: evenOdds(.05), run: func(b *bench) (*result, error) {
		var made [2][samples][]byte
		for i := range samples {
			for kind := range made {
				var err error
				if made[kind][i], err = request(b, i, kind == 0); err != nil {
					return nil, err
				}
			}
		}
		return compareTimes(b, samples, func(i int, known bool) []byte {
			if known {
				return made[0][i]
			}
			return made[1][i]
		}, nil)
	}}
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

// assertions asks for tokens of clients that sign assertions by an algorithm.
func assertions(b *bench, signers *target.Signers, alg string, conns int) (load.Spec, error) {
	whole := b.duration + b.duration/slice*sliceWarmUp + 2*time.Second
	return workload.Assertions(b.ctx, b.up, signers, alg, conns, int(whole*mostTokens/time.Second))
}

var errTooFew = errors.New("more tokens than assertions were made for")

// beside is a row of tokens for clients that sign assertions, while others send their own.
func beside(b *bench, signers *target.Signers, others ...load.Spec) (*result, error) {
	spec, err := assertions(b, signers, target.ES256, 16)
	if err != nil {
		return nil, err
	}
	r, err := b.load(b.tokensvc(), "tokens/s", spec, others...)
	if err == nil && r.rate > mostTokens {
		err = errTooFew
	}
	return r, err
}
