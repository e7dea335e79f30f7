// Package fsck reads everything that a store holds, and reports what is wrong with it.
//
// # Contract
//
// [Run] checks the state of the newest revision: the pages of every file, the checksum of
// every record, that log and index agree in both directions, that an index made again from
// the log would be the same, that the index by time of each segment leads to its records
// and back, and that the account of live records is right. Writes,
// expiry and compaction may go on meanwhile.
//
// # Errors
//
// The error of Run is for a check that could not be made. What the check found is in the
// [Report]; [DamagedError] makes an error of that.
//
// # Concurrency
//
// Run is safe for concurrent use, and keeps each read transaction short.
//
// The package changes nothing and knows nothing of who writes.
package fsck
