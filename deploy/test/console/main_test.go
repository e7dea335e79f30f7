package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// root is the repository.
var root string

func TestMain(m *testing.M) {
	var err error
	if root, err = filepath.Abs("../../.."); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
