// Package keyring holds the RSA keys that sign access tokens, over their whole life, and publishes the public halves.
//
// The state of a key follows from nothing but the clock and the times at which the keys begin to sign. With keys A and
// B, where B begins at t:
//
//	      t-lead           t            t+tail
//	A  ────────── signing ─┤── retiring ──┤ gone
//	B  ┤── pending ────────┤── signing ──────────
//
// A pending key is published but does not sign yet, so that nobody who remembers the key set for its max-age meets a
// token it cannot verify: lead is twice the max-age, and for files a little more, in which they reach all replicas. A
// retiring key is published until the last token it signed has expired everywhere: tail is the token lifetime plus an
// allowance for clocks that differ. Because nothing else enters the rule, replicas that see the same key files agree
// without talking to each other.
package keyring
