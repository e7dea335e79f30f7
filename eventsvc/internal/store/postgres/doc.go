// Package postgres is the engine of package store on PostgreSQL, for several replicas of the service.
//
// # Contract
//
// The database gives order and durability. Each replica reads from a copy of it in bolt files of its own, with
// everything that these can do:
//
//	write  Update, DeleteMany → queue → one transaction for each batch (commit_batch) → log
//	copy   tail → records of the log after the copy's revision → bolt copy → watchers
//	read   Get, List, Watch, Timeline → bolt copy;   Fresh makes it as new as the newest commit
//
// A write is answered when this replica's copy has it, so that its client reads what it wrote.
//
// If commits wait for a standby, the copies have the log only up to the revision that is confirmed to be there (table
// confirmed). Otherwise they could show what a failover loses: PostgreSQL lets others see a commit that no standby has
// when the wait for the standby was cancelled, or after a crash.
//
// Every commit locks the one row of the table head. The order of revisions is therefore the order of commits, and no
// revision is missing. A precondition that fails refuses its write alone. [Migrate] makes the tables and functions,
// which are SQL files in migrations, numbered, and only ever added to.
//
// How a write waits for a standby (a quorum of standbys): PostgreSQL itself waits, as its synchronous_standby_names
// say. confirm.go finds commits that were answered without that wait, and confirms revisions; standby.go only reports,
// for the probe and for [Check].
//
// The files: db.go opens the engine; write.go gathers writes, committer.go commits batches, epoch.go and head.go know
// the newest revision and which history it is of; tail.go brings the log into the copy, replica.go replaces a copy and
// timeline.go reads it; retention.go removes what is past its time, on one replica; migrate.go and check.go are the
// database commands; session.go keeps the console's sessions; connect.go, admin.go and metrics.go are what they say.
//
// # Errors
//
// Errors are those of package store. [store.ErrUnavailable] says that the database does not answer and that nothing was
// written. A commit whose answer was lost is not tried again: its batch has a number, by which the replica asks what
// became of it as soon as the database answers. No error contains the DSN.
//
// # Concurrency
//
// All methods of [DB] are safe for concurrent use.
package postgres
