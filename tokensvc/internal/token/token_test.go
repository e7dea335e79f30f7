package token_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/token"
)

// signer returns the payload instead of signing it.
type signer struct{ err error }

func (s signer) Sign(_ context.Context, payload []byte) (string, string, error) {
	return string(payload), "key-1", s.err
}

func issuer(t *testing.T, c token.Config) *token.Issuer {
	t.Helper()
	c.Issuer, c.Now = "the issuer", func() time.Time { return time.Unix(1_800_000_000, 999_999_999) }
	if c.Lifetime == 0 {
		c.Lifetime = 300 * time.Second
	}
	if c.Signer == nil {
		c.Signer = signer{}
	}
	i, err := token.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestClaims compares the whole payload, except for the random jti.
func TestClaims(t *testing.T) {
	t.Parallel()
	demo := client.Client{ClientID: "demo", Scope: "read"}
	audience := client.Client{ClientID: "demo", Scope: "read", Audience: []string{"a"}}
	audiences := client.Client{ClientID: "demo", Scope: "read", Audience: []string{"a", "b"}}
	for name, tc := range map[string]struct {
		config token.Config
		client client.Client
		scope  bool
		want   string
	}{
		"contract":      {token.Config{}, demo, false, `{"iss":"the issuer","sub":"demo","aud":"demo","exp":1800000300,"nbf":1800000000,"iat":1800000000,"jti":"J"}`},
		"scope asked":   {token.Config{}, demo, true, `{"iss":"the issuer","sub":"demo","aud":"demo","exp":1800000300,"nbf":1800000000,"iat":1800000000,"jti":"J","scope":["read"]}`},
		"customization": {token.Config{Lifetime: 10 * time.Minute, ScopeClaim: true}, demo, false, `{"iss":"the issuer","sub":"demo","aud":"demo","exp":1800000600,"nbf":1800000000,"iat":1800000000,"jti":"J","scope":["read"]}`},
		"audience":      {token.Config{}, audience, false, `{"iss":"the issuer","sub":"demo","aud":"a","exp":1800000300,"nbf":1800000000,"iat":1800000000,"jti":"J"}`},
		"audiences":     {token.Config{}, audiences, false, `{"iss":"the issuer","sub":"demo","aud":["a","b"],"exp":1800000300,"nbf":1800000000,"iat":1800000000,"jti":"J"}`},
		"one of many":   {token.Config{}, client.Client{ClientID: "demo", Subject: "system:serviceaccount:a:b"}, false, `{"iss":"the issuer","sub":"system:serviceaccount:a:b","aud":"demo","exp":1800000300,"nbf":1800000000,"iat":1800000000,"jti":"J","client_id":"demo"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := issuer(t, tc.config).Issue(t.Context(), tc.client, tc.scope)
			if err != nil {
				t.Fatal(err)
			}
			jti := regexp.MustCompile(`"jti":"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"`)
			if shown := jti.ReplaceAllString(got.Value, `"jti":"J"`); shown != tc.want {
				t.Errorf("payload %s\nwant    %s", shown, tc.want)
			}
			if got.KeyID != "key-1" || got.ExpiresIn() != got.Claims.Expires-1_800_000_000 {
				t.Errorf("key %s, expires in %d", got.KeyID, got.ExpiresIn())
			}
		})
	}
}

func TestIssueFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("no key")
	if got, err := issuer(t, token.Config{Signer: signer{err: broken}}).Issue(t.Context(), client.Client{ClientID: "demo"}, false); !errors.Is(err, broken) || got.Value != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]token.Config{
		"no issuer":            {Lifetime: time.Second, Signer: signer{}},
		"no lifetime":          {Issuer: "i", Signer: signer{}},
		"fraction of a second": {Issuer: "i", Lifetime: 1500 * time.Millisecond, Signer: signer{}},
		"no signer":            {Issuer: "i", Lifetime: time.Second},
	} {
		if _, err := token.New(c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
