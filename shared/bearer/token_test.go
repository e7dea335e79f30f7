package bearer_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/shared/bearer"
)

// The issuer of these tests: tokens are put together by hand, without the library that verifies them, so that both
// sides cannot be wrong in the same way.
const (
	issuer   = "https://issuer.example"
	audience = "eventsvc"
	goodKID  = "key-1"
	now      = 1_800_000_000
	leeway   = 10 * time.Second
	good     = `{"alg":"RS256","kid":"key-1","typ":"JWT"}`
)

// Two keys of the issuer and one of somebody else; made once, because that is slow.
var testKeys = sync.OnceValue(func() (keys [3]*rsa.PrivateKey) {
	for i := range keys {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			panic(err)
		}
	}
	return keys
})

// fixedKeys is a key set that does not change.
type fixedKeys map[string]bearer.Key

func (k fixedKeys) Key(_ context.Context, kid, _ string) (bearer.Key, error) {
	if key := k[kid]; key != nil {
		return key, nil
	}
	return nil, bearer.ErrUnknownKey
}

// public is a key of the testKeys for RS256, another object each time.
func public(key *rsa.PrivateKey) *bearer.PublicKey {
	return must(bearer.NewPublicKey(&key.PublicKey, []string{bearer.RS256}))
}

func clock() time.Time { return time.Unix(now, 0) }

func newVerifier(t testing.TB, change func(*bearer.Config)) *bearer.Verifier {
	t.Helper()
	c := bearer.Config{
		Issuer: issuer, Audience: []string{audience, "other-name"}, Leeway: leeway, Now: clock,
		Keys: fixedKeys{goodKID: public(testKeys()[0])},
	}
	if change != nil {
		change(&c)
	}
	v, err := bearer.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// claims is a good payload with some members changed: name, JSON value, name, JSON value, …; an empty value leaves the
// member out.
func claims(changes ...string) string {
	members := [][2]string{
		{"iss", `"` + issuer + `"`}, {"sub", `"client-1"`}, {"aud", `"` + audience + `"`}, {"exp", fmt.Sprint(now + 300)},
		{"iat", fmt.Sprint(now)}, {"nbf", fmt.Sprint(now)}, {"jti", `"3f0a"`}, {"scope", `["a","b"]`},
	}
	for ; len(changes) > 0; changes = changes[2:] {
		found := false
		for i := range members {
			if members[i][0] == changes[0] {
				members[i][1], found = changes[1], true
			}
		}
		if !found {
			members = append(members, [2]string{changes[0], changes[1]})
		}
	}
	var fields []string
	for _, member := range members {
		if member[1] != "" {
			fields = append(fields, fmt.Sprintf("%q: %s", member[0], member[1]))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func encode(data string) string { return base64.RawURLEncoding.EncodeToString([]byte(data)) }

// token signs header and payload, given as text, with RS256 and the issuer's key.
func token(header, payload string) string { return signed(testKeys()[0], header, payload) }

func signed(key *rsa.PrivateKey, header, payload string) string {
	return join(header, payload, func(input []byte) []byte {
		sum := sha256.Sum256(input)
		return must(rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:]))
	})
}

// join makes a token with any signature.
func join(header, payload string, sign func(input []byte) []byte) string {
	input := encode(header) + "." + encode(payload)
	return input + "." + encode(string(sign([]byte(input))))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func hs256(secret []byte) func([]byte) []byte {
	return func(input []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(input)
		return mac.Sum(nil)
	}
}

func ps256(input []byte) []byte {
	sum := sha256.Sum256(input)
	return must(rsa.SignPSS(rand.Reader, testKeys()[0], crypto.SHA256, sum[:], nil))
}

func rs384(input []byte) []byte {
	sum := sha512.Sum384(input)
	return must(rsa.SignPKCS1v15(nil, testKeys()[0], crypto.SHA384, sum[:]))
}

func es256(input []byte) []byte {
	sum := sha256.Sum256(input)
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		panic(err)
	}
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}
