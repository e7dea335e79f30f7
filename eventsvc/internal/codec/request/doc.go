// Package request reads what clients send: events, other objects, and patches of
// four kinds, as JSON, YAML or protobuf.
//
// # Contract
//
// A body means what it means to kube-apiserver, in both views: which fields are
// unknown, what is tolerated, and the text of every refusal. The Kubernetes
// libraries decode and merge. A decoder of our own (fastdecode.go)
// reads the usual bodies faster. It gives the same result, or leaves the body to
// the library.
//
// # Limits
//
// A body of few bytes can become a hundred times as many in memory, so its
// depth, values and operations are bounded before anything is made of it. Large
// bodies are read in pieces, with other goroutines in between.
//
// # Errors
//
// Every error about a body is a Status: 400, 409, 413, 415 or 422. A body that
// breaks a limit is an [event.LimitError].
//
// # Concurrency
//
// A [Decoder] is safe for concurrent use. No event that is passed in is changed,
// and what is returned does not share the body.
//
// # What it does not know
//
// The stored form, answers, and HTTP apart from the names of media types.
package request
