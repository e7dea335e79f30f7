// Package client is the other end of the API: a small client of event servers, this one or a Kubernetes API server, for
// the commands that use one. It knows bytes and versions, not what an event is: objects come and go as raw JSON, so that
// nothing is lost on the way.
//
//	Config ── who and where: flags, or a kubeconfig
//	Tokens ── a bearer token that stays fresh while a command runs for hours
//	Client ── one request, one page, one watch; every failure is an error that says what to do
//	Backoff ── when to try again, as the server wishes
package client
