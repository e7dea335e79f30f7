// Package load puts load on a server, over HTTP/1.1 or over TLS and HTTP/2, and
// checks the answers.
//
// It shares the machine's cores with the server that it measures, so it must
// be cheap: one thread, one epoll set, non-blocking sockets, preformatted
// requests, and a parser that reads only what is checked. A request takes two
// system calls and 10 µs of CPU time, where a client of net/http takes 30 µs
// (64 connections to a server that answers "hello", medians of five runs).
//
// Everything runs between calls of Loop.Run and on the caller's goroutine, so
// no type in this package is safe for concurrent use, and none needs a lock.
package load
