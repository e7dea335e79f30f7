// Package cli is the command line of a service: one struct with kong tags has its settings, and flags, environment
// variables, a YAML file and defaults fill it, in this order.
//
// # Contract
//
// [Parse] fills the struct. It prints help and usage errors itself; the caller only exits with [ExitCode] of the error.
// A mistake in the settings is a [UsageError], exit code 2, and its text names the setting and the fix. An environment
// variable with the service's prefix or a key of the file that belongs to no setting is such a mistake too, because a
// misspelt setting must not be ignored silently.
//
// kong (github.com/alecthomas/kong) parses; this package adds the file, unknown names with the nearest known one,
// clearer errors, durations such as 30d (duration.go), completion scripts and the printing of settings. It knows
// nothing of HTTP or of processes.
package cli
