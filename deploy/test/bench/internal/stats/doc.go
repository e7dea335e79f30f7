// Package stats holds what is computed over the samples of one row: latency
// quantiles and the separability of two sets of times.
package stats
