// Package powercut cuts the power of a running eventsvc and compares what is
// left with what the service has acknowledged.
//
// The data directory lies on a file system in memory, served through FUSE, that
// keeps apart what was written and what was synced: file by file, and directory
// by directory. A cut kills the service and throws away what was not synced:
// all of it, none of it, or a random part of it in which writes are torn at the
// borders of sectors. Then "eventsvc check" and a start must succeed, and every
// acknowledged change must be there under its revision, in lists and in watches.
//
//	disk.go    files and names, what of them is durable, and what a cut leaves
//	mount.go   the disk as a FUSE file system
//	process.go eventsvc as a process, and the issuer of its tokens
//	client.go  requests, lists and watches
//	load.go    kinds of load, and the clients that make it
//	model.go   what was acknowledged, compared with what is there
//	chain.go   one data directory that lives through several cuts
//
// TestPowerCuts is the campaign. TestSecretsAreDurable cuts the power after the first start. The other tests show that
// it finds what it is made for: they run it against builds of eventsvc with one mistake each.
package powercut
