// Package dump reads events from files that somebody sent: lists of kubectl, watches, logs,
// support bundles, exports of this service.
//
//	file, folder, stdin → files of archives → text in UTF-8 → JSON or YAML → objects → events
//
// What a file is shows in its content, never in its name. What is an event comes out as
// an event of events.k8s.io/v1, whichever API version it was written in. What is not is
// counted by kind. What cannot be read is reported with its place, and the rest goes on.
//
// The files: dump.go goes through files and folders, archive.go through tar, zip and gzip, scanner.go reads bytes
// and knows the line; encoding.go finds out what a text is, json.go and yaml.go find objects in it, classify.go says
// which of them are events, item.go makes them whole and labels.go names their cluster; leftout.go counts what was
// left out.
//
// # Hostile files
//
// Files come from strangers. JSON is read as a stream, YAML in pieces; an object may have
// [maxObject] bytes, a piece of YAML [maxPiece]. Archives are never unpacked to the disk:
// their files are read one after the other. Names with .. or control characters, links and
// devices are not followed; the sum of what a file expands to is bounded, and so is the
// number of its entries. An archive within an archive is named and not opened.
package dump
