// Package client is a small client of event servers, eventsvc or a Kubernetes API server, for the commands that use
// one. Objects stay raw JSON, so that a field this program does not know is not lost.
//
//	Config ── a server and how to authenticate, from flags or a kubeconfig
//	Tokens ── a source of bearer tokens, which renews them while a command runs for hours
//	Client ── requests, lists and watches
//	Backoff ── the waits between attempts
//
// A refusal of the server is an error of type [k8s.io/apimachinery/pkg/api/errors.StatusError]. [UnreachableError]
// means that no whole answer came, so that a write may have been carried out or not. [TokenError] means that nothing
// was sent.
//
// The files: client.go sends requests and reads lists, follow.go watches and resumes, bulk.go creates many events in
// one request (protobuf.go); tokens.go and kubeconfig.go find credentials; backoff.go waits, errors.go says what to do.
package client
