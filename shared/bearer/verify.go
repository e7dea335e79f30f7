package bearer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// MaxToken is the most bytes of a token. Entra names up to 200 groups in a token, which are 12 KiB; what reads requests
// leaves a header twice as much room.
const MaxToken = 16 << 10

// DefaultMaxLife is the longest life of a token where [Config] names none.
const DefaultMaxLife = time.Hour

const (
	maxKeyID = 128
	maxName  = 1024 // of a subject or client id

	maxLeeway     = 5 * time.Minute
	defaultMemory = 8 << 20
)

// Caller is who sent a verified token. It may be shared by requests and must not be changed.
type Caller struct {
	Issuer, Subject   string
	ClientID          string // the client id claim, or the subject of a token without it
	Audience, Scopes  []string
	ID                string // jti, may be empty
	KeyID, Algorithm  string // kid and alg of the token, by which its key is found
	IssuedAt, Expires time.Time
	Claims            map[string][]string // those that Config.KeepClaims names and the token has
}

// KeySet finds the public key of an issuer by its id and the algorithm of the signature. A set without this key returns
// [ErrUnknownKey]; any other error means that the keys are not available at present.
type KeySet interface {
	Key(ctx context.Context, kid, alg string) (Key, error)
}

// ErrUnknownKey is the error of a [KeySet] that has no such key.
var ErrUnknownKey = errors.New("unknown key")

// errOtherKey is the error of a set whose keys of the given id are for other algorithms.
var errOtherKey = fmt.Errorf("%w for this algorithm", ErrUnknownKey)

// Config says which tokens a [Verifier] accepts.
type Config struct {
	Issuer   string   // the exact iss; required
	Audience []string // aud must name one of them; empty: any aud, or none, is accepted
	Keys     KeySet   // the issuer's keys and no others; required

	Algorithms   []string // accepted signature algorithms; empty: RS256
	Types        []string // accepted typ, in lower case; an absent one and JWT are always accepted; empty: those of access tokens
	AnyKeyID     bool     // accept tokens without kid, for which Keys is asked for the empty id
	SoleAudience bool     // aud must have no other value

	Leeway  time.Duration // allowance for clocks that differ, at most 5 minutes; 0: none
	MaxLife time.Duration // longest accepted exp−iat; 0: one hour

	// The names of the issuer's claims. KeepClaims are claims, strings or lists of strings, that are copied to the
	// Caller. A null is no claim: providers write it for people without groups. Other types are refused, because no
	// rule says which text they are.
	ClientIDClaim string // empty: client_id (RFC 9068 section 2.2); Keycloak and OpenID Connect: azp
	ScopeClaim    string // a string separated by spaces, or a list; empty: scope
	KeepClaims    []string

	CacheBytes int                   // memory for verified tokens; 0: 8 MiB; negative: none is remembered
	Registry   prometheus.Registerer // for bearer_tokens_total; may be nil
	Now        func() time.Time      // nil: time.Now
}

// Verifier verifies the tokens of one issuer. It is safe for concurrent use.
type Verifier struct {
	Config
	seen     *cache // nil: no token is remembered
	outcomes outcomes
}

// New returns a [Verifier]. An error names the setting that cannot be used.
func New(c Config) (*Verifier, error) {
	switch {
	case c.Issuer == "":
		return nil, errors.New("bearer: no issuer configured")
	case c.Keys == nil:
		return nil, errors.New("bearer: no key set configured")
	case slices.Contains(c.Audience, ""):
		return nil, errors.New("bearer: an audience is empty")
	case c.Leeway < 0 || c.Leeway > maxLeeway:
		return nil, errors.New("bearer: the leeway must be between 0 and 5m: a larger one defeats expiry")
	case c.MaxLife < 0:
		return nil, errors.New("bearer: the maximum life of a token must not be negative")
	}
	if err := checkAlgorithms(c.Algorithms); err != nil {
		return nil, fmt.Errorf("bearer: %w", err)
	}
	c.complete()
	v := &Verifier{Config: c, outcomes: newOutcomes(c.Registry)}
	if c.CacheBytes > 0 {
		v.seen = newCache(c.CacheBytes)
	}
	return v, nil
}

// complete sets the defaults.
func (c *Config) complete() {
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{RS256}
	}
	if len(c.Types) == 0 {
		c.Types = []string{"at+jwt", "application/at+jwt"}
	}
	c.MaxLife = cmp.Or(c.MaxLife, DefaultMaxLife)
	c.ScopeClaim = cmp.Or(c.ScopeClaim, "scope")
	c.ClientIDClaim = cmp.Or(c.ClientIDClaim, "client_id")
	c.CacheBytes = cmp.Or(c.CacheBytes, defaultMemory)
	if c.Now == nil {
		c.Now = time.Now
	}
}

// Verify returns the caller that sent the token, or an *[Error].
func (v *Verifier) Verify(ctx context.Context, token string) (*Caller, error) {
	return v.outcomes.counted(v.verify(ctx, token))
}

func (v *Verifier) verify(ctx context.Context, token string) outcome {
	if len(token) > MaxToken {
		return refuse(invalidToken("too long"))
	}
	sum := sumOf(token)
	if o, ok := v.recall(ctx, sum); ok {
		return o
	}
	p, refusal := split(token)
	if refusal != nil {
		return refuse(refusal)
	}
	return v.verifyNew(ctx, &p, sum)
}

// recall returns the outcome of a token that was verified before. It looks the key up again: if the key was withdrawn,
// the token is refused; if it was replaced, recall returns false and the token has to be verified again.
func (v *Verifier) recall(ctx context.Context, sum [sha256.Size]byte) (outcome, bool) {
	hit, ok := v.seen.get(sum)
	if !ok {
		return outcome{}, false
	}
	key, refusal := v.key(ctx, hit.caller.KeyID, hit.caller.Algorithm)
	switch {
	case refusal != nil:
		return refuse(refusal), true
	case v.expired(hit.caller.Expires):
		return refuse(invalidToken("expired")), true
	case !sameKey(key, hit.key):
		return outcome{}, false
	}
	return outcome{caller: hit.caller, remembered: true}, true
}

// verifyNew verifies a token that is not remembered, and remembers it if it is valid.
func (v *Verifier) verifyNew(ctx context.Context, p *parts, sum [sha256.Size]byte) outcome {
	alg, kid, refusal := v.checkHeader(p.header)
	if refusal != nil {
		return refuse(refusal)
	}
	key, refusal := v.key(ctx, kid, alg)
	if refusal != nil {
		return refuse(refusal)
	}
	valid := key.Verify(alg, []byte(p.signed), p.signature)
	if p.tried = valid || mayVerify(key, alg, p.signature); !valid {
		return refuse(invalidToken("signature wrong"))
	}
	if p.claims == nil {
		var err error
		if p.claims, err = decodeObject(p.payload); err != nil {
			return refuse(invalidToken("payload damaged"))
		}
	}
	caller, refusal := v.checkClaims(p.claims)
	if refusal != nil {
		return refuse(refusal)
	}
	caller.KeyID, caller.Algorithm = kid, alg
	v.seen.put(sum, remembered{caller, key}, len(p.signed)+len(p.signature))
	return outcome{caller: caller}
}

// Withdrawn reports whether the key that signed the caller's token has left the key set. A watch that was begun with
// the token must then end. While the keys are not available it returns false, because that is not a withdrawal.
func (v *Verifier) Withdrawn(ctx context.Context, c *Caller) bool {
	_, err := v.Keys.Key(ctx, c.KeyID, c.Algorithm)
	return errors.Is(err, ErrUnknownKey)
}

// key finds a key. An unknown key is refused with 401, a key set that is not available with 503. A key verifies only
// signatures by its own algorithms.
func (v *Verifier) key(ctx context.Context, kid, alg string) (Key, *Error) {
	key, err := v.Keys.Key(ctx, kid, alg)
	switch {
	case errors.Is(err, errOtherKey):
		return nil, invalidToken("signature wrong")
	case errors.Is(err, ErrUnknownKey):
		return nil, invalidToken("key unknown")
	case err != nil:
		return nil, unavailable(ReasonUnavailable)
	}
	return key, nil
}

// parts are the decoded parts of a token.
type parts struct {
	signed                     string // header and payload as they were signed
	header, payload, signature []byte
	claims                     object // of the payload; nil: not decoded yet
	tried                      bool   // the signature has been verified, with all the work that this takes
}

// base64url is strict: it refuses trailing bits that are not zero. Go's decoder skips line breaks, so split refuses
// those.
var base64url = base64.RawURLEncoding.Strict()

// split decodes a compact JWS (RFC 7515 section 7.1) strictly, so that two different texts are never the same token.
func split(token string) (parts, *Error) {
	header, rest, ok1 := strings.Cut(token, ".")
	payload, signature, ok2 := strings.Cut(rest, ".")
	if !ok1 || !ok2 || strings.Contains(signature, ".") {
		return parts{}, invalidToken("not three parts")
	}
	p := parts{signed: token[:len(header)+1+len(payload)]}
	if strings.ContainsAny(token, "\r\n") {
		return parts{}, invalidToken("not base64url")
	}
	text, room := []byte(token), make([]byte, base64url.DecodedLen(len(token)))
	for _, part := range []struct {
		length int
		into   *[]byte
	}{{len(header), &p.header}, {len(payload), &p.payload}, {len(signature), &p.signature}} {
		n, err := base64url.Decode(room, text[:part.length])
		if err != nil {
			return parts{}, invalidToken("not base64url")
		}
		*part.into, room, text = room[:n:n], room[n:], text[min(part.length+1, len(text)):]
	}
	return p, nil
}

// header is what a token says about its signature, not trusted yet.
type header struct{ alg, kid string }

// A headerRule checks one thing in the header of a token.
type headerRule struct {
	rule
	check func(*Verifier, object, *header) *Error
}

// headerRules are applied in this order.
var headerRules = []headerRule{
	{rule{"algorithm", fixed("alg"), func(v *Verifier) string { return oneOf(v.Algorithms) }}, (*Verifier).checkAlgorithm},
	{rule{"extensions", fixed(extensions...), func(*Verifier) string { return "none of " + strings.Join(extensions, ", ") }}, checkExtensions},
	{rule{"type", fixed("typ"), func(v *Verifier) string { return "none, or " + oneOf(append([]string{"jwt"}, v.Types...)) }}, (*Verifier).checkType},
	{rule{"key id", fixed("kid"), func(*Verifier) string { return "the id of a key that the issuer publishes" }}, (*Verifier).checkKeyID},
}

// extensions are header members that are not supported (RFC 7515 section 4.1.11, RFC 7797), or belong to nested tokens.
var extensions = []string{"crit", "b64", "zip", "cty"}

// checkHeader checks the header and returns the algorithm and the key id.
func (v *Verifier) checkHeader(data []byte) (alg, kid string, _ *Error) {
	members, err := decodeObject(data)
	if err != nil {
		return "", "", invalidToken("header damaged")
	}
	var h header
	for _, r := range headerRules {
		if refusal := r.check(v, members, &h); refusal != nil {
			return "", "", refusal
		}
	}
	return h.alg, h.kid, nil
}

func (v *Verifier) checkAlgorithm(members object, h *header) *Error {
	if h.alg, _ = members.text("alg"); !slices.Contains(v.Algorithms, h.alg) {
		return invalidToken("alg not allowed")
	}
	return nil
}

func checkExtensions(_ *Verifier, members object, _ *header) *Error {
	if slices.ContainsFunc(extensions, members.has) {
		return invalidToken("header extension")
	}
	return nil
}

func (v *Verifier) checkType(members object, _ *header) *Error {
	if !members.has("typ") {
		return nil
	}
	typ, _ := members.text("typ")
	typ = strings.ToLower(typ) // media types are case-insensitive (RFC 7515 section 4.1.9)
	if typ != "jwt" && !slices.Contains(v.Types, typ) {
		return invalidToken("typ of another token")
	}
	return nil
}

func (v *Verifier) checkKeyID(members object, h *header) *Error {
	if v.AnyKeyID && !members.has("kid") {
		return nil
	}
	if h.kid, _ = members.text("kid"); !isName(h.kid, maxKeyID) {
		return invalidToken("kid missing or malformed")
	}
	return nil
}

// Decoded is a token that has been decoded and not verified. Issuer and Subject are its iss and sub, empty if it has
// none. Anybody can write them: they only choose the keys and rules by which the token is verified.
type Decoded struct {
	Issuer, Subject string

	token string
	parts parts
}

// Decode decodes a token without verifying it. An error is an *[Error].
func Decode(token string) (*Decoded, error) {
	if len(token) > MaxToken {
		return nil, invalidToken("too long")
	}
	p, refusal := split(token)
	if refusal != nil {
		return nil, refusal
	}
	var err error
	if p.claims, err = decodeObject(p.payload); err != nil {
		return nil, invalidToken("payload damaged")
	}
	d := &Decoded{token: token, parts: p}
	d.Issuer, _ = p.claims.text("iss")
	d.Subject, _ = p.claims.text("sub")
	return d, nil
}

// Tried reports whether verifying the token has cost the work of its signature.
func (d *Decoded) Tried() bool { return d.parts.tried }

// SignatureSize is the number of bytes of the signature.
func (d *Decoded) SignatureSize() int { return len(d.parts.signature) }

// Try verifies the signature by a key that the token is not for, so that its refusal costs as much work as any other.
func (d *Decoded) Try(key Key) {
	if members, err := decodeObject(d.parts.header); err == nil {
		alg, _ := members.text("alg")
		key.Verify(alg, []byte(d.parts.signed), d.parts.signature)
	}
}

// VerifyDecoded is [Verifier.Verify] of a token that has been decoded already.
func (v *Verifier) VerifyDecoded(ctx context.Context, d *Decoded) (*Caller, error) {
	sum := sumOf(d.token)
	if o, ok := v.recall(ctx, sum); ok {
		return v.outcomes.counted(o)
	}
	return v.outcomes.counted(v.verifyNew(ctx, &d.parts, sum))
}
