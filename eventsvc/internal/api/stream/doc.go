// Package stream serves watches: it counts them, ends them, and writes the changes
// of the store to their clients.
//
// # Contract
//
// [Streams.ListOrWatch] wraps the handler of a path that can be listed and watched.
// The handler answers a list itself and begins a watch with [Streams.Open], which
// asks a [Source] for the state at the beginning and for the frame of each change. stream.go
// says at which revision a watch begins, streams.go how many watches there may be and when they end.
//
// A watch outlives the decision on its request, so it is decided on again: when the
// policy changes, and every second for the key that signed its token. A watch that is
// no longer allowed, or is for other clusters now, ends as any watch ends, cleanly and after a bookmark; the
// client's next request is told why.
//
// A slow watch ends in one of two ways. A client that reads too slowly for its share of memory gets an ERROR with 429
// ([flow.Room]; stream.go waits for room first). One whose revision is older than the history that is kept gets 410
// Expired: before the first byte from [Streams.Open], later from readreplay.go of package bolt, when the ring of
// package watch has lapped it.
//
// # Errors
//
// What is wrong before the first byte is an ordinary error. Later, and for a version
// that is gone or to come, an ERROR event ends the stream.
//
// # Concurrency
//
// Streams is safe for concurrent use, a Stream and its Source are for one goroutine.
//
// # What it does not know
//
// What the frames of its sources are about.
package stream
