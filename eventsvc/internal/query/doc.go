// Package query answers what happened: which events, how many, of what, when, and to
// which objects.
//
// # Contract
//
// [Querier.Snapshot] fixes one state of the store and the part of it that a [Query] is
// about. Its methods answer: [Snapshot.Events] and [Snapshot.Object] with versions of
// events, [Snapshot.Histogram], [Snapshot.Facets] and [Snapshot.Groups] with counts, and
// [Snapshot.Overview] with the first page, the histogram and the facets of one question, which it reads in one pass.
// A [Head] says what an answer covers; it is complete when the method has returned.
//
// Counts are of observations ([store.Timeline.Count]): an update of a series from count 7 to 12 counts 5, at the time
// of the last one. As long as a query asks about [Dimension]s only, what has been deleted since is counted like all
// else. A query with text, with terms on other fields or labels, or by object ([Head.OverEvents]) counts what the
// versions that are held report.
//
// A list whose revision is no longer held goes on with the newest state, leaves out
// what was written after its revision, and is partial: what it showed is not shown again.
//
// Terms become an [event.Filter], which the store evaluates.
//
// The files: query.go has the question, terms.go the search in it; eventpages.go, life.go, histogram.go, facets.go,
// groups.go and overview.go answer; count.go bounds what is counted, rhythm.go says how often something comes, gaps.go
// what is missing, hints.go what else may have been meant, deleted.go what was deleted.
//
// # Errors
//
// What is wrong with a query is a [ParameterError], which names its parameter. Other errors are
// those of the store and of the context.
//
// # Concurrency
//
// A Querier is safe for concurrent use, a Snapshot is for one goroutine. A count is one call of the timeline, which
// lets others go first now and then. [DefaultLimits] bound the groups of each count, and the versions that a list looks
// at. What is cut depends on what is stored, never on how busy the machine is.
//
// # What it does not know
//
// HTTP, callers and their rights (package access decides, [Query.Allows] has the result),
// how events are rendered, and how a store finds them.
package query
