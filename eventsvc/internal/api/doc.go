// Package api is the HTTP surface of the events service: routes and errors as clients
// of a Kubernetes API server know them.
//
// It joins packages that do not know each other's work:
//
//   - events: the verbs of events, one file each, and the create of many
//   - queries: what happened, over time
//   - discovery: what the server is, what a caller may do, and the read-only namespaces
//   - loki: the part of Loki's API that reads
//   - resource: where clients get tokens
//   - mcp: tools for agents, which ask queries
//   - access: who may do what, and fair queueing; stream: watches
//   - httpio: query parameters, bodies, answers, errors
//
// Every request passes [Server.serve]; what only some clients need belongs to their folder:
// the texts of Loki's errors, and the console's files.
//
// A new group of routes is a package beside these, with a function Route that
// [Server.routes] calls. It wraps its handlers in [access.Guard.Allow], reads through
// the store that it is given, and answers with an [httpio.IO]; its handlers return
// errors instead of writing them. For paths outside of /api and /apis, extend
// [canonical], which drops a slash at the end, and the folders that [New] gives to
// [httpio.New], below which an unknown path is answered with a Status.
//
// The package decides nothing about events (package event), bytes (package codec) or
// disks (package store).
package api
