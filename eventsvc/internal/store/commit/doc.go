// Package commit decides in which order writes happen, and commits them in batches: from the
// queue of writes to the disk.
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
// A [Writer] makes the records of a batch durable ([Writer.Append]). It writes them to the
// write-ahead log with one sync. Until the head of the log has them they are the pending records
// of the [seglog.Log], so that readers find them. When half of the write-ahead log is full, a
// checkpoint brings its records into the head, in one transaction, while the other half is being
// written. A batch that is too large for that goes straight into the head, together with all
// pending records. So does every batch until the next start where there was no room on the disk
// for a write-ahead log.
//
// [Writer.Rotate] seals the head and starts the next. A sealed segment notes with which revision
// it ends, and the next begins behind that. So there may be any number of revisions between two
// records: those of batches that failed, and those that [Writer.Skip] leaves out.
//
// The [Clock] is the time of writes.
//
// Several writes share one sync (group commit). Back-pressure is the bounded queue: beyond it a write is refused with
// [store.ErrBusy], which clients see as 429.
//
// The files: prepare.go decides about one event and batch.go about several; queue.go has the writes that wait,
// committer.go commits them, clock.go gives their times; writer.go, checkpoint.go and rotate.go make records durable;
// merger.go merges the index; deletemany.go deletes collections; replicate.go takes what another store has committed;
// health.go and life.go say whether the store can go on.
//
// # Errors
//
// [ErrConflict]: the event is not at the version that the caller saw. [store.ErrBusy]: the
// queue is full. [store.ErrClosed]: the Committer has ended.
// [store.ErrFull] and [store.ErrUnwritable]: the batch could not be made durable. The
// error of a Write's context may be returned although the write was made.
//
// A batch that fails because the disk is full ([disk.IsFull]) has left nothing behind in the head,
// and the next one may succeed. Every other failure, and every one of the write-ahead log, may
// have left the batch on the disk in part. Another sync would not tell: the kernel drops pages
// that it could not write, and reports the error once. From then on every write is refused with
// [store.ErrUnwritable], and the process stops ([Health]). The next start finds what was
// acknowledged, and the batch that failed whole or not at all.
//
// # Concurrency
//
// All methods are safe for concurrent use, except where they say otherwise. What only the
// committer may do is done through [Queue.Do], between two batches. A Writer has one user at a
// time, the committer; its Health is safe for concurrent use.
//
// The package does not know what a value holds, when anything expires, or who reads.
package commit
