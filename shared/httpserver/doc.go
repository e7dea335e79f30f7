// Package httpserver serves HTTP for both services: listeners with TLS, time limits for slow clients, request ids,
// access lines and metrics.
//
// # Contract
//
// [Listen] opens the endpoints of a process; package service runs and stops them. [Access] wraps a handler. What it
// knows of a request is read and added by functions that take the request's context, such as [RequestID] and
// [Annotate].
//
// Every connection has limits: for the header, for the body, for each write of an answer, and for the time between
// requests. A client that reaches one is cut off, which is counted.
//
// The files: listen.go opens endpoints, tls.go their certificates, server.go starts and stops serving, clientaddress.go
// finds who asks behind a proxy (X-Forwarded-For), common.go bounds what one address may hold; limits.go has the times
// and sizes of a connection, which connection.go, pace.go and writetimeout.go hold slow clients to; access.go and
// requestmetrics.go write access lines and metrics, request.go has what is known of a request.
//
// # What it does not know
//
// Tokens, routes and the rest of the process.
package httpserver
