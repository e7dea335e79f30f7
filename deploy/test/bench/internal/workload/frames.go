package workload

import (
	"fmt"
	"net/netip"
	"strings"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// Frames makes the posts for the floor of watches: each has an event as a watch delivers it, padded to size bytes.
func Frames(addr netip.AddrPort, size int) target.Form {
	line := `{"type":"ADDED","object":{"metadata":{"name":"` + load.NamePrefix + target.NumberHole + `",` + floor.RevisionHole + `},"padding":"`
	line += strings.Repeat("x", size-len(line)-len("\"}}\n")) + "\"}}\n"
	return target.NewForm(fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", addr, len(line), line))
}
