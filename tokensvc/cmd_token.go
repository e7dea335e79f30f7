package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
)

// tokens has the commands for tokens.
type tokens struct {
	Fetch   tokenFetch   `cmd:"" help:"Fetch a token and print it."`
	Inspect tokenInspect `cmd:"" help:"Show what is in a token, and why a service would refuse it."`
}

// Help is shown below the commands.
func (*tokens) Help() string {
	return `Call a service:

    curl -H "Authorization: Bearer $(tokensvc token fetch --token-url http://127.0.0.1:9000/oauth2/token \
        --client-id demo --client-secret-file secret.txt)" http://127.0.0.1:8080/version

Check whether a service that requires the audience "events" would accept a token:

    tokensvc token inspect --audience events < token.txt`
}

type tokenFetch struct {
	tokenSource `embed:""`
}

// Run prints the token and nothing else.
func (f *tokenFetch) Run(ctx context.Context, std stdio) error {
	if err := f.check(); err != nil {
		return err
	}
	got, err := f.fetch(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, got.AccessToken)
	return err
}

type tokenInspect struct {
	File     string        `arg:"" optional:"" help:"File that holds the token (default: standard input)."`
	Issuer   string        `help:"Issuer that the service trusts (default: the one the token names)." placeholder:"TEXT"`
	Audience string        `help:"Audience that the service asks for (default: any)." placeholder:"TEXT"`
	JwksURL  string        `name:"jwks-url" help:"Published keys (default: from the issuer's metadata)." placeholder:"URL"`
	Leeway   time.Duration `default:"0s" help:"Allowance of the service for clocks that differ."`
}

// Run prints header and claims, and verifies the token as a service does. It returns an error for a refused token.
func (i *tokenInspect) Run(ctx context.Context, std stdio) error {
	text, err := i.read(std)
	if err != nil {
		return err
	}
	header, claims, err := decodeToken(text)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		members map[string]any
	}{{"header", header}, {"claims", claims}} {
		shown, err := json.MarshalIndent(part.members, "", "  ")
		if err != nil {
			return fmt.Errorf("print %s: %w", part.name, err)
		}
		fmt.Fprintf(std.out, "%s %s\n", part.name, printable.JSON(shown))
	}
	if err := i.judge(ctx, text, claims); err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, "A service would accept it.")
	return err
}

func (i *tokenInspect) read(std stdio) (string, error) {
	in := std.in
	if i.File != "" {
		var err error
		if in, err = os.Open(i.File); err != nil {
			return "", cli.Usagef("%w; name a file that holds a token, or give it on standard input", err)
		}
		defer in.Close()
	}
	text, err := io.ReadAll(io.LimitReader(in, 64<<10))
	return strings.TrimPrefix(strings.TrimSpace(string(text)), "Bearer "), err
}

// decodeToken decodes a token without verifying it.
func decodeToken(token string) (header, claims map[string]any, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, nil, errors.New("not a token: it has no three parts with dots between them")
	}
	for i, into := range []*map[string]any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return nil, nil, fmt.Errorf("not a token: part %d is not base64url: %w", i+1, err)
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(into); err != nil {
			return nil, nil, fmt.Errorf("not a token: part %d is not JSON: %w", i+1, err)
		}
	}
	return header, claims, nil
}

// judge verifies the token with package bearer, as services do.
func (i *tokenInspect) judge(ctx context.Context, token string, claims map[string]any) error {
	issuer := i.Issuer
	if issuer == "" {
		issuer, _ = claims["iss"].(string)
	}
	url := i.JwksURL
	if url == "" {
		var err error
		if url, err = bearer.DiscoverJWKS(ctx, issuer, nil, nil); err != nil {
			return fmt.Errorf("no keys to verify it with: %w; give --jwks-url", err)
		}
	}
	keys, err := bearer.NewJWKS(bearer.JWKSConfig{URL: url})
	if err != nil {
		return cli.Usagef("--jwks-url: %w", err)
	}
	var audience []string
	if i.Audience != "" {
		audience = []string{i.Audience}
	}
	verifier, err := bearer.New(bearer.Config{Issuer: issuer, Audience: audience, Keys: keys, Leeway: i.Leeway})
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if _, err = verifier.Verify(ctx, token); err != nil {
		return fmt.Errorf("a service would refuse it: %w%s", err, hint(err, claims, issuer, i.Audience))
	}
	return nil
}

// hint explains the reason for this token.
func hint(err error, claims map[string]any, issuer, audience string) string {
	switch err.Error() {
	case "expired":
		if exp, err := json.Number(fmt.Sprint(claims["exp"])).Int64(); err == nil {
			return fmt.Sprintf(" (since %s; it is %s)", time.Unix(exp, 0).UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
		}
	case "other audience":
		return fmt.Sprintf(" (aud is %v, the service asks for %q; set \"audience\" in the client's registration)", claims["aud"], audience)
	case "other issuer":
		return fmt.Sprintf(" (iss is %v, the service trusts %q)", claims["iss"], issuer)
	case "key unknown":
		return " (its key is not published any more: was tokensvc restarted with a key in memory? --signing-key keeps keys)"
	case "not valid yet":
		return " (the clocks of issuer and service differ)"
	}
	return ""
}
