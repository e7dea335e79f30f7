// Package observability holds the tests of deploy/observability: they fire every alert of both services, and compare
// the metrics that the rules and the dashboard ask for with those that the services have.
package observability
