// Package boltfile opens and makes the bbolt files of a store, and keeps damaged ones from harming
// the process that reads them.
//
// # Contract
//
// Every file has a bucket "meta" whose entry "format" names the store and the version
// of the format, and whose entry "store" is a random id that is equal in all files of
// one store. [Open] accepts no other file, and checks the pages of a file before bbolt
// follows them. [Install] makes a file that appears under its name only when it is
// whole. [Write] makes one that its caller fills and renames.
//
// [Pages] checks the page structure of a file before bbolt follows it. [Guard] and [View] turn what
// bbolt does on a damaged page while it is read, a panic or a fault, into an error. Both are
// needed: Guard cannot stop an endless recursion, and Pages cannot foresee damage that comes
// later. After damage that [Update] meets, bbolt keeps no lock. [Prefetch] has
// the kernel read many leaves at the same time.
//
// [Readers] counts the references to an open file. A file that is replaced or removed is unlinked at once, as an open
// file may be, and its last reader closes it.
//
// bbolt has no checksums, so the values of a store carry one of key and value
// ([Checksum]).
//
// # Errors
//
// A file that is empty, foreign, damaged, locked by another process or not accessible
// is a [*store.FileError], and was not changed. A full disk is not: nothing is wrong
// with the file then. [ErrChecksum] reports an entry whose checksum does not match.
//
// # Concurrency
//
// All functions are safe for concurrent use; a path must have one user at a time.
//
// The package knows nothing of what a file holds outside its meta bucket.
package boltfile
