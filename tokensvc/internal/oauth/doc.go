// Package oauth is the HTTP API of the service: the token endpoint (RFC 6749 section 4.4), the published keys and
// metadata, and the resources for callers with a token of this service.
//
// server.go has the routes. request.go reads a token request, token.go decides about it. error.go lists every refusal
// with its answer and the section of its RFC, and audit.go logs and counts the outcome. protected.go has what needs a
// token.
package oauth
