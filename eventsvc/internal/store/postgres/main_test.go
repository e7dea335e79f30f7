package postgres_test

import (
	"flag"
	"os"
	"testing"

	"tidings.example/shared/pgtest"
)

// The tests wait for servers more than they compute, so more of them run at a time than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil { // -parallel goes before
		panic(err)
	}
	os.Exit(pgtest.Run(m.Run))
}
