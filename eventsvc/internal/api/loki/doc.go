// Package loki serves the part of Loki's HTTP API that reads, so that Grafana, logcli and
// whatever else speaks to Loki can look at events.
//
// # Contract
//
// A stream is what has the same labels: namespace, type, reason, kind, reporter, cluster, owner, node,
// level (warning or info, by the type) and service_name (the reporter). Empty ones are left
// out. An entry is an event that exists, as it was last observed in the range of the query, among the versions that
// pass the pipeline; its line is the note. So ranges that follow each other show an event twice if it was observed in
// both. Structured metadata are name and uid of what the event is about, action, count, host (of the source, else the
// reporting instance), and detected_level, which Logs Drilldown asks for.
//
// count_over_time and rate count occurrences, as /query/v1 does: an event that was seen twelve times is counted twelve
// times, each when it was reported. An expression decides where they come from:
//
//   - If labels alone decide (a selector, filters on labels of the stream or on
//     detected_level), they are counted in columns, also if the event has been deleted or has expired since.
//   - If the line or the event decides (line filters, json, filters on or grouping by
//     structured metadata), every selected version that is held is looked at, and what it adds is counted.
//
// A window has its beginning but not its end. It may be shorter than a second: an entry is
// in it by its time, an occurrence by the second in which it was observed, as if at its
// beginning. Points are at multiples of the step, so that the pieces which clients
// ask for one by one fit together. The series of a range aggregation have the labels of
// the stream, and of other labels those that the expression names in by or keep.
//
// A caller sees the namespaces that it may list, and watch for tail. The header
// X-Scope-OrgID, which names a tenant in Loki, selects a cluster.
//
// The files: labels.go has labels and level of an event, select.go finds entries, counts.go counts; names.go,
// volume.go and tail.go serve their paths; parameters.go reads parameters.
//
// # Errors
//
// An error is a text, as in Loki. A limit that a client reaches by what it asks for is an error. One that others can
// fill by what they write, such as the number of streams, cuts the answer, which has a warning: each namespace has a
// share ([share]).
//
// # Concurrency
//
// All handlers are safe for concurrent use. Requests run with a seat of fair queueing.
// Each reads in several steps, between which others have their turn, and ends with its
// client.
//
// # What it does not know
//
// LogQL (package logql), and how events are found (package store).
package loki
