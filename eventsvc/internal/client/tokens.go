package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"tidings.example/shared/printable"
)

// Tokens is a source of bearer tokens that fetches a new token before the current one expires: a command may run for
// days, and tokens live for minutes. A nil *Tokens returns no token. It is safe for concurrent use; one caller at a
// time fetches.
type Tokens struct {
	fetch func(context.Context) (credential, error)
	turn  chan struct{} // holds one element while a caller uses the following fields

	kept     credential
	failure  error // of the last fetch
	failedAt time.Time
}

// newTokens returns a source of the credentials that fetch returns.
func newTokens(fetch func(context.Context) (credential, error)) *Tokens {
	return &Tokens{fetch: fetch, turn: make(chan struct{}, 1)}
}

// credential is a token and the time until which it can be used. Without a time it is used once.
type credential struct {
	token string
	until time.Time
}

// tokenMargin is how long before its end a token is no longer used, so that it does not expire on the way.
const tokenMargin = 10 * time.Second

// Token returns the token to send now, or "" if there is no source.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	if t == nil {
		return "", nil
	}
	asked := time.Now()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if time.Until(t.kept.until) > 0 {
		return t.kept.token, nil
	}
	if t.failedAt.After(asked) { // while this caller waited, which must not wait for as long again
		return "", t.failure
	}
	c, err := t.fetch(ctx)
	if err != nil {
		t.failure, t.failedAt = err, time.Now()
		return "", err
	}
	t.kept = c
	return c.token, nil
}

// replace drops a token that a server refused, and reports whether there is another one now. The error says why there
// is none.
func (t *Tokens) replace(ctx context.Context, refused string) (bool, error) {
	if t == nil {
		return false, nil
	}
	t.turn <- struct{}{}
	if t.kept.token == refused {
		t.kept = credential{}
	}
	<-t.turn
	token, err := t.Token(ctx)
	return token != refused, err
}

// StaticToken returns a source that has only this token.
func StaticToken(token string) *Tokens {
	return newTokens(func(context.Context) (credential, error) { return credential{token: token}, nil })
}

// FileToken returns a source that reads a file for each request, so that others, such as a kubelet, can renew the file.
func FileToken(name string) *Tokens {
	return newTokens(func(context.Context) (credential, error) {
		content, err := os.ReadFile(name)
		if err != nil {
			return credential{}, err
		}
		token := strings.TrimPrefix(strings.TrimSpace(string(content)), "Bearer ")
		if token == "" {
			return credential{}, fmt.Errorf("%s is empty", name)
		}
		return credential{token: token}, nil
	})
}

// bareTokenLife is how long a token is used that a program prints without an expiry time.
const bareTokenLife = 30 * time.Second

// CommandToken returns a source that runs a program. The program prints either a credential for kubectl (ExecCredential
// of client.authentication.k8s.io, as `tokensvc credential` does) or only a token (as `tokensvc token fetch` does). env
// is added to the environment.
func CommandToken(env []string, name string, args ...string) *Tokens {
	return newTokens(func(ctx context.Context) (credential, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Env = append(os.Environ(), env...)
		if err := cmd.Run(); err != nil {
			return credential{}, fmt.Errorf("%s: %w %s", name, err, printable.OneLine(stderr.String()))
		}
		return readCredential(name, bytes.TrimSpace(stdout.Bytes()))
	})
}

func readCredential(name string, printed []byte) (credential, error) {
	if len(printed) == 0 {
		return credential{}, fmt.Errorf("%s printed no token", name)
	}
	if printed[0] != '{' {
		if bytes.ContainsAny(printed, " \n\t") {
			return credential{}, fmt.Errorf("%s printed something else than a token", name)
		}
		return credential{token: string(printed), until: time.Now().Add(bareTokenLife)}, nil
	}
	var e struct {
		Kind   string
		Status struct {
			Token                 string
			ClientCertificateData string
			ExpirationTimestamp   time.Time
		}
	}
	if err := json.Unmarshal(printed, &e); err != nil || e.Kind != "ExecCredential" {
		return credential{}, fmt.Errorf("%s printed JSON that is no ExecCredential", name)
	}
	if e.Status.Token == "" {
		if e.Status.ClientCertificateData != "" {
			return credential{}, fmt.Errorf("%s gives a client certificate; only tokens of programs can be used", name)
		}
		return credential{}, fmt.Errorf("%s printed an ExecCredential without a token", name)
	}
	until := e.Status.ExpirationTimestamp
	if until.IsZero() { // kubectl uses such a token until it is refused; send asks again then
		until = time.Now().Add(time.Hour)
	}
	return credential{token: e.Status.Token, until: until}, nil
}

// FetchedToken returns a source that calls fetch some time before the current token expires. fetch returns a token and
// when it expires.
func FetchedToken(fetch func(context.Context) (token string, expires time.Time, err error)) *Tokens {
	return newTokens(func(ctx context.Context) (credential, error) {
		token, expires, err := fetch(ctx)
		margin := min(tokenMargin, max(0, time.Until(expires)/2))
		return credential{token: token, until: expires.Add(-margin)}, err
	})
}
