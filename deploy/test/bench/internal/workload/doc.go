// Package workload makes the requests of clients that mean well, for the rows of the benchmark, and checks the answers.
// Those of clients that mean harm are in package attack.
package workload
