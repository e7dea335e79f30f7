// Package loki serves the part of Loki's HTTP API that reads, so that Grafana, logcli and
// whatever else speaks to Loki can look at events.
//
// # Contract
//
// A stream is what has the same labels: namespace, type, reason, kind, reporter, cluster, owner, node,
// level (warning or info, by the type) and service_name (the reporter). Empty ones are left
// out. An entry is an event as it is now, at the time at which it was last observed; its
// line is the note. Structured metadata are name and uid of what the event is about,
// action, count, host (of the source, else the reporting instance), and detected_level,
// which Logs Drilldown asks for.
//
// There are two ways to count, and an expression decides which one is used:
//
//   - If labels alone decide (a selector, filters on labels of the stream or on
//     detected_level), count_over_time and rate count occurrences: an event that was seen
//     twelve times is counted twelve times, each when it was reported, also if the event
//     has been deleted or has expired since. That is what bars over time are for, and it
//     is answered from an index.
//   - If the line or the event decides (line filters, json, filters on or grouping by
//     structured metadata), they count entries: each event once, when it was last
//     observed, which is what the lines below the bars are. Every selected event is
//     looked at.
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
