// Package floor measures what this machine can do at most, in the same run as
// the services: the disk, bbolt, the loopback path, an HTTP server without
// work, the fan-out of bytes to many connections, a signature and a password
// hash. Compared with its floor, a row shows how much is left to gain.
package floor
