// Package security holds the checks of the repository as a whole: that every
// threat in .github/SECURITY.md has a test, that every dependency has a reason
// and a licence, that every fuzz target has seeds, that no secret is in a
// tracked file, and that the code that the walkthrough names exists, as do
// the commands and flags in all pages.
package security
