// Package observability holds the alert rules and the dashboard of both
// services, and the tests that fire every alert.
package observability
