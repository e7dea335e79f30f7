package main

import (
	"flag"
	"testing"

	"tidings.example/tokensvc/internal/outputtest"
)

// The tests wait more than they compute, so more of them run at a time than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // -parallel goes before
		panic(err)
	}
	outputtest.Main(m)
}
