package workload

import (
	"context"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// signatureEvery: one in so many tokens is verified.
const signatureEvery = 50

// Tokens asks for tokens for all clients in turn and verifies a sample.
func Tokens(ctx context.Context, s *target.Services, conns int) (load.Spec, error) {
	requests := make([][]byte, target.ClientCount)
	for i := range requests {
		requests[i] = s.TokenRequest(target.ClientID(i), target.ClientSecret)
	}
	return tokens(ctx, s, conns, requests, target.ClientID)
}

// Assertions asks for tokens with count assertions that the clients of an algorithm sign, each of which is good once.
func Assertions(ctx context.Context, s *target.Services, signers *target.Signers, alg string, conns, count int) (load.Spec, error) {
	requests, err := signers.AssertionRequests(s, alg, count)
	if err != nil {
		return load.Spec{}, err
	}
	spec, err := tokens(ctx, s, conns, requests, func(i int) string { return target.SignerID(alg, i) })
	spec.Limit = count
	return spec, err
}

// Accounts asks for tokens with the service-account tokens of all clients in turn.
func Accounts(ctx context.Context, s *target.Services, signers *target.Signers, conns int) (load.Spec, error) {
	requests, err := signers.AccountRequests(s)
	if err != nil {
		return load.Spec{}, err
	}
	return tokens(ctx, s, conns, requests, target.AccountID)
}

// tokens sends requests in turn and verifies that a sample of the tokens is for the clients.
func tokens(ctx context.Context, s *target.Services, conns int, requests [][]byte, client func(i int) string) (load.Spec, error) {
	keys, err := s.Keys(ctx)
	if err != nil {
		return load.Spec{}, err
	}
	return load.Spec{
		Addr: s.TokenAPI(), Secure: s.TLS, Conns: conns,
		Next: func(dst []byte, i int) []byte { return append(dst, requests[i%len(requests)]...) },
		Check: func(i int, a *load.Answer) error {
			if err := load.Status(200)(i, a); err != nil || i%signatureEvery != 0 {
				return err
			}
			return keys.Verify(a.Body, client(i))
		},
	}, nil
}

// KeySets asks for the keys of the tokens.
func KeySets(s *target.Services, conns int) load.Spec {
	request := []byte("GET " + target.JWKSPath + " HTTP/1.1\r\nHost: " + s.TokenAddr.String() + "\r\n\r\n")
	return load.Spec{
		Addr: s.TokenAddr, Conns: conns,
		Next:  func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: load.Status(200),
	}
}

// FirstTokens asks once for each client, which costs a bcrypt compare.
func FirstTokens(spec load.Spec) error {
	spec.Conns, spec.Limit, spec.Interval = 1, target.ClientCount, 0
	return load.Do(spec, time.Minute)
}
