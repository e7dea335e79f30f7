// Package security holds the checks of the repository as a whole: that every
// threat in .github/SECURITY.md has a test, that every dependency has a reason
// and a licence, that every fuzz target has seeds, that no secret is in a
// tracked file, that the code that the README and the walkthrough name exists, and that
// packages and types are not too large.
package security
