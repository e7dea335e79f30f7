// Package conformance proves that stock Kubernetes clients work against a
// running eventsvc: client-go, two versions of kubectl and the Python client,
// and, byte by byte, the behaviour that they rely on. It has no code but its
// tests.
//
// Every test starts the real binary on ports of its own, with a data directory
// of its own and an issuer made for the run. COVERAGE.md lists the facts about
// the API and the test that proves each.
package conformance
