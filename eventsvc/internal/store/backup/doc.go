// Package backup writes the files of a store to a tar archive, and makes a data directory
// of one again.
//
// # Contract
//
// [Snapshot] holds the files of one moment apart from the store, which goes on meanwhile.
// [Snapshot.Write] writes the archive: first a manifest that names the other files, then
// these. Without the manifest an archive that was cut between two files would pass for a
// whole one.
//
// [Restore] unpacks an archive beside a data directory that is empty or not there yet, has
// its caller check it there, and then renames it. A data directory is therefore whole or
// absent, also after a crash. The next Restore removes what one before has left.
//
// # Errors
//
// The text of an error of Restore says what is wrong with the archive or the directory.
// [store.ErrInUse]: another process restores into the directory.
//
// # Concurrency
//
// A Snapshot has one user at a time. Of several Restores into one directory, in one
// process or several, one succeeds.
//
// The package knows the names of log files and the version of their format, and nothing of
// what they hold.
package backup
