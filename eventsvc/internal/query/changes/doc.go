// Package changes answers what changed before an instant: which reasons are new, which are
// more or less frequent than expected, and which objects began to fail, most unexpected
// first.
//
// # Contract
//
// [Rank] compares a window of time with all history before it. A series is what agrees in
// cluster, namespace, kind of object, reason and type. Its count in the window is compared
// with the highest (for a rise) or lowest (for a fall) of what is usual: its average, and its counts
// in the window before and at the same time of former days and weeks, as far as history has them. A
// difference that one of them explains does not count. What is usual of a warning is
// estimated without outages, by medians: what happened once before hides nothing that happens again (usual.go).
//
// What came about as often once before, and rarely else, is news again: that time is left out of what is usual,
// and named ([Change.Former]).
//
// The evidence for a change is Dunning's G², the log-likelihood ratio of two Poisson
// rates, divided by the dispersion of the series: how much its counts vary more than
// chance does. The score of a row is the binary logarithm of the evidence, up to a bound
// from which a change is certain, times weights (rank.go). They
// prefer warnings, what is new, what concerns several objects, and what came first: a row
// that another one precedes, in its namespace or in one that a note names, is taken for a symptom. [Change.Why] has
// the numbers.
//
// What changes alike in several namespaces is one row, except where it began first, and so
// are reasons that come as often at the same time in the same namespaces, and the routine steps
// of one change, such as a rollout. A problem is never one row with what is routine. Objects of
// one owner, as the names tell, are one row ("web-*"). When something has certainly changed, less
// evidence suffices for what is related to it, and for what came in the minute before.
//
// A question with a search or about an object has rows too for what came of it though seldom before or never, even once
// (seldom.go).
//
// The same question to the same state has the same answer. Nothing is learned, and nothing
// outside the namespaces that the question is allowed has any influence, except the time at
// which the store was first written to.
//
// Occurrences are counted without reading events. Events are read to find objects and
// samples: at most 5,000 attributes, 200 events and 500 for each sample; what that leaves
// out is in [Answer.Partial], as is history that is too short. An event is found in the
// window only if it was not observed again later in the state that is looked at: ask with
// a revision for an instant that is long past.
//
// An object that was changed, as a mirror has recorded it ([event.ObjectChanged]), is no failure, and is not compared
// with its past. A change of the object that fails, of its owner, of its node, or of an object that a note names is a
// row before the row that the change explains; so is a change of another object in the namespace, if few have changed
// (causes.go). A rollout is a row behind the problem of the Pods that it made (rollouts.go).
//
// # Files
//
// changes.go has question and answer; history.go and objects.go read; usual.go says what is usual; silence.go finds
// from where nothing comes any more; compare.go has the evidence, and says whether something is new, more or less;
// rank.go has weights and order, seldom.go what is no row without a search; began.go says since when a problem goes
// on; cascade.go says what came before a row, elsewhere.go what bears on a namespace from elsewhere; causes.go says
// which changed objects precede a row, and rollouts.go which rollouts; telling.go chooses its note and names its
// object; parts.go tells incidents of one row apart; why.go and verdict.go word it.
//
// # Errors
//
// What is wrong with a question is a [query.ParameterError]. Other errors are those of the
// timeline and of the context.
//
// # Concurrency
//
// Rank is safe for concurrent use. It counts by a few calls of the timeline, which lets others go
// first between its rounds, and holds memory for at most 20,000 series. What it costs depends on
// what was observed, and not on how long ago the first of that was.
//
// # What it does not know
//
// HTTP, callers and their rights ([Query.Allows] has the result), gaps in which a mirror
// was away: what these hide counts as not observed.
package changes
