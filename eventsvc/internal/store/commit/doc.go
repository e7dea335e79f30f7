// Package commit decides in which order writes happen, and commits them in batches.
//
// # Contract
//
// A [Write] is put into a bounded [Queue] ([Queue.Submit]). One goroutine, the
// [Committer], takes all writes that wait as one batch, checks each against the state that
// the batch has come to, and gives a revision to those that it accepts. It makes their
// records durable with one sync, puts them into the memtable of the index, publishes the
// changes in order of revision, and then answers the writers. There is no timer: while one
// batch is being committed the next one gathers.
//
// A write that is refused does not touch its neighbours in the batch. When the Committer
// is told to stop it commits what is waiting, and refuses everything after that.
//
// A second goroutine merges memtables into the index file ([Merger.Run]).
//
// # Errors
//
// [ErrConflict]: the event is not at the version that the caller saw. [store.ErrBusy]: the
// queue is full. [store.ErrClosed]: the Committer has ended.
// [store.ErrFull] and [store.ErrUnwritable]: the batch could not be made durable. The
// error of a Write's context may be returned although the write was made.
//
// # Concurrency
//
// All methods are safe for concurrent use, except where they say otherwise. What only the
// committer may do is done through [Queue.Do], between two batches.
//
// The package does not know what a value holds, when anything expires, or in which files
// records lie.
package commit
