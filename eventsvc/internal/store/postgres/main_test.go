package postgres_test

import (
	"os"
	"testing"

	"tidings.example/shared/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m.Run)) }
