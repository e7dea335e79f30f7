// Package porttest finds ports for servers that tests start in other processes, or start again at the same address. A
// server that says where it listens is given port 0 instead.
package porttest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// The ports are below those that the system gives to outgoing connections, one of which could take the port while its
// server is restarted.
const from, to = 12000, 32000

// Addr returns a loopback address on which nobody listens. Nobody else who asks gets it until the test ends.
func Addr(t testing.TB) string {
	t.Helper()
	addr, release, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return addr
}

// Take is Addr without a test: nobody else gets the address until it is released, or the process ends. The tests of all
// processes mark an address by binding it for UDP.
func Take() (addr string, release func(), err error) {
	for range to - from {
		addr = fmt.Sprintf("127.0.0.1:%d", from+(os.Getpid()*100+int(tried.Add(1)))%(to-from))
		mark, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr, func() { _ = mark.Close() }, nil
		}
		_ = mark.Close()
	}
	return "", nil, fmt.Errorf("no port between %d and %d is free", from, to)
}

var tried atomic.Int32
