package porttest_test

import (
	"net"
	"testing"

	"tidings.example/shared/porttest"
)

// TestAddr: addresses differ until they are released, and can be listened on at once, and again.
func TestAddr(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 300 {
		addr := porttest.Addr(t)
		if seen[addr] {
			t.Errorf("%s was given out twice", addr)
		}
		seen[addr] = true
		for range 2 {
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Close()
		}
	}
}

// TestReleased: an address that is released can be marked by another.
func TestReleased(t *testing.T) {
	t.Parallel()
	addr, release, err := porttest.Take()
	if err != nil {
		t.Fatal(err)
	}
	if mark, err := net.ListenPacket("udp", addr); err == nil {
		_ = mark.Close()
		t.Error("the address is not marked")
	}
	release()
	mark, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = mark.Close()
}
