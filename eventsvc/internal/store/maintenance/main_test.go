package maintenance_test

import (
	"flag"
	"os"
	"testing"
)

// The tests wait more for the disk than they compute, so more of them run at a time than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // -parallel goes before
		panic(err)
	}
	os.Exit(m.Run())
}
