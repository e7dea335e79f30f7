// Package storetest has what the tests of the store, of its engines and of their parts share. What the store
// promises is tested in package store.
package storetest

import "flag"

// The long forms of tests, for which make test has no time.
var (
	// Long asks for the forms that prove more and take minutes.
	Long = flag.Bool("long", false, "run the long forms of the robustness tests")
	// Compress has the stores of tests compress their log files as soon as they are sealed.
	Compress = flag.Bool("compress", false, "compress log files as soon as they are sealed")
)
