// Package keyring holds the RSA keys that sign access tokens, through all states of their life, and publishes the
// public keys.
//
// The state of a key follows only from the clock and from the times at which the keys begin to sign. With keys A and B,
// where B begins at t:
//
//	      t-lead           t            t+tail
//	A  ────────── signing ─┤── retiring ──┤ gone
//	B  ┤── pending ────────┤── signing ──────────
//
// A pending key is published but does not sign yet, so that a verifier that caches the key set for its max-age has the
// key of every token. For that, lead is twice the max-age; for files it is a little more, the time in which they reach
// all replicas. A retiring key is published until the last token that it signed has expired everywhere: tail is the
// lifetime of tokens and an allowance for clocks that differ. Nothing else affects the states, so replicas that see the
// same key files agree without communication.
//
// The files: keyfiles.go reads and follows key files, schedule.go says which state a key is in and makes the key set,
// key.go makes the id of a key and the header of its tokens, sign.go signs, rotate.go and addfile.go begin with the
// next key.
package keyring
