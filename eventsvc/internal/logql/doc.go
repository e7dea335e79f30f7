// Package logql parses a subset of LogQL, the query language of Loki, and evaluates it.
//
// # Contract
//
// [Parse] returns a [*Log] (which lines, and what becomes of them) or a [Metric]
// (numbers over time). The subset is what events need:
//
//	{namespace="shop", reason=~"Back.*"}                stream selectors: = != =~ !~
//	|= "a" != "b" |~ "c" !~ "d", |= "a" or "b"          line filters
//	| json                                              the fields of the event become labels
//	| count > 5 and name=~"web-.*" or level="warning"   label filters: text, numbers, durations
//	| drop __error__, level="info"  | keep name         labels are left out
//	count_over_time(… [5m] offset 1h)  rate(… [5m])
//	sum|min|max|avg|topk|bottomk by|without (…) (…)
//	+ - * / % ^, numbers, vector(1)
//
// One thing more is accepted because Grafana's Logs Drilldown puts it into every query:
// "| logfmt" directly behind "| json". It extracts key=value pairs from the line.
//
// The empty selector {} is accepted, unlike in Loki: it selects every stream.
//
// [Log.Selects] and [Log.Process] evaluate a log query on one [Entry]. [Evaluate]
// evaluates a metric over the [Series] that a [Counter] has counted for its range
// aggregations, at a few points in time.
//
// The text of an expression ([Expr]'s String) parses to the same expression.
//
// # Errors
//
// Whatever is not in the subset is an [*Error] that names the construct and where it
// stands, in Loki's form: "parse error at line 1, col 5: syntax error: …". Expressions and
// nesting are bounded, and so are the instructions of all regular expressions of a query,
// which are those of RE2, before any is compiled.
//
// What is matched may be long all the same. It is matched in [flow.Turns], and their end
// makes a query select nothing more; the caller must ask them.
//
// # Concurrency
//
// Parsed expressions are immutable and safe for concurrent use. An Entry is for one
// goroutine.
//
// # What it does not know
//
// Events, labels that exist, stores and HTTP: package loki does.
package logql
