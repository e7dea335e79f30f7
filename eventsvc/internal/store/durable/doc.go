// Package durable brings records to the disk: into the write-ahead log, and by checkpoints
// from there into the head of the log.
//
// # Contract
//
// [Writer.Append] returns when the records of a commit are durable. It writes them to the
// write-ahead log with one sync. Until the head has them they are the pending records of
// the [seglog.Log], so that readers find them. When half of the write-ahead log is full, a
// checkpoint brings its records into the head, in one transaction, while the other half is
// being written. A commit that is too large for that goes straight into the head, together
// with all pending records. So does every commit until the next start where there was no
// room on the disk for a write-ahead log.
//
// [Writer.Rotate] seals the head and starts the next. A sealed segment notes with which
// revision it ends, and the next begins behind that. So there may be any number of
// revisions between two records: those of commits that failed, and those that
// [Writer.Skip] leaves out.
//
// # Errors
//
// A commit to the head that fails because the disk is full ([disk.IsFull]) has left nothing
// behind, and the next one may succeed. Every other failure, and every one of the
// write-ahead log, may have left the commit on the disk in part.
// Another sync would not tell: the kernel drops pages that it could not write, and reports
// the error once. From then on every write is refused with [store.ErrUnwritable], until
// [Writer.Failover] has copied what was acknowledged to new files. The revisions of the
// commit that failed are never used again.
//
// # Concurrency
//
// A Writer has one user at a time, the committer. Its Health is safe for concurrent
// use, and readers of the log go on whatever the Writer does.
//
// The package does not know what records mean, who waits for them or who reads them.
package durable
