package clientsfile_test

import (
	"testing"

	"tidings.example/tokensvc/internal/outputtest"
)

func TestMain(m *testing.M) { outputtest.Main(m) }
