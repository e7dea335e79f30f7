package bearer

import (
	"context"
	"net/http"
)

// Endpoints are where an OpenID provider signs people in, from its metadata (OpenID Connect Discovery 1.0 section 3).
// All are URLs of https, or of http on this machine.
type Endpoints struct {
	Authorization string // a browser is sent there to sign in
	Token         string // where a code becomes tokens
	EndSession    string // a browser is sent there at the end (OpenID Connect RP-Initiated Logout 1.0); empty: nowhere
	Revocation    string // where a refresh token is given back (RFC 7009); empty: nowhere
	NamesItself   bool   // every answer of Authorization has the parameter iss (RFC 9207 section 3)
}

// DiscoverEndpoints asks an issuer where it signs people in. It reads metadata as [DiscoverJWKS] does. Plain HTTP is
// for this machine only, because it is a person's browser that sends the code and the tokens. CAFile of the source is
// what the issuer's certificate is verified with; its token is for the keys and not sent.
func DiscoverEndpoints(ctx context.Context, issuer string, source KeySource) (Endpoints, error) {
	client, err := (&KeySource{CAFile: source.CAFile}).client()
	if err != nil {
		return Endpoints{}, err
	}
	if client != nil {
		defer client.CloseIdleConnections()
	}
	return discoverEndpoints(ctx, issuer, client)
}

func discoverEndpoints(ctx context.Context, issuer string, client *http.Client) (e Endpoints, err error) {
	err = discover(ctx, issuer, client, nil, func(m object) (err error) {
		var found Endpoints
		for _, member := range []struct {
			name     string
			value    *string
			optional bool
		}{
			{"authorization_endpoint", &found.Authorization, false},
			{"token_endpoint", &found.Token, false},
			{"end_session_endpoint", &found.EndSession, true},
			{"revocation_endpoint", &found.Revocation, true},
		} {
			if *member.value, err = m.address(member.name, nil); err != nil && !member.optional {
				return err
			}
		}
		found.NamesItself = string(m["authorization_response_iss_parameter_supported"]) == "true"
		e = found
		return nil
	})
	return e, err
}
