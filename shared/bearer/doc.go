// Package bearer verifies the bearer token of a request (RFC 6750): whether it is a valid access token of a configured
// issuer, and which caller sent it. It is the only place that verifies tokens, and it fails closed.
//
// Tokens are signed JWTs in compact form, by RS256 if nothing else of [Algorithms] is configured. A [JWKS] fetches the
// keys of an issuer again when their max-age has passed, and when a token names one that it does not have. What is
// checked, in this order:
//
//	length, three parts, strict base64url             nothing is decoded twice or differently
//	header: no duplicate names, alg, typ, kid,        RFC 8725 sections 3.1, 3.11; RFC 7515 section 4
//	        no crit, b64, zip, cty
//	key: known to this issuer's key set               jku, jwk, x5u and x5c of the header are never looked at
//	signature                                         by jwx, with the algorithm fixed by us and fitting the key
//	claims: no duplicate names, iss, aud, sub, exp,   RFC 9068 section 4; RFC 8725 sections 3.8 to 3.10
//	        iat, nbf, longest life, no cnf
//
// Only the signature is left to the JOSE library, because libraries are lenient where it matters (duplicate members,
// padding, unknown algorithms, missing claims). The reason of a refusal goes to logs and metrics and not to the caller.
//
// The files: request.go takes the token of a request, verify.go and claims.go check it, strictjson.go reads its JSON,
// explain.go says which check it fails, error.go answers (WWW-Authenticate), cache.go remembers. jwks.go, fetch.go and
// endpoints.go get key sets, filekeys.go and issuerkeys.go follow those of files and of issuers, succeed.go hands them
// on to a new version of an issuer.
//
// A verified token is remembered by its SHA-256 until it expires or its key leaves the key set, so that verifying it
// again costs about a microsecond. A bearer token can be replayed until it expires, and the token of a deleted client
// stays valid until then. That is why tokens are short-lived.
package bearer
