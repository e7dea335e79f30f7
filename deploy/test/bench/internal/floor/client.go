package floor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tidings.example/deploy/test/bench/internal/proc"
)

// Command is the first argument that makes this program a floor server, in a
// process of its own. The arguments of Serve follow it.
const Command = "floor-server"

// Start starts a floor server in a process of its own, with its log and its
// data in dir, and waits until it takes connections. Stop ends it.
func Start(dir, kind string) (*proc.Process, netip.AddrPort, error) {
	addr, err := proc.FreeAddr()
	if err != nil {
		return nil, addr, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, addr, fmt.Errorf("floor server: %w", err)
	}
	p, err := proc.Start(filepath.Join(dir, "floor.log"), exec.Command(self, Command, kind, addr.String(), dir))
	if err != nil {
		return nil, addr, err
	}
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", addr.String())
		if err == nil {
			return p, addr, c.Close()
		}
		if time.Now().After(end) {
			return nil, addr, errors.Join(fmt.Errorf("floor server: %w", err), Stop(p))
		}
		time.Sleep(time.Millisecond)
	}
}

// Stop ends a floor server, which ends by no other means than a signal.
func Stop(p *proc.Process) error {
	if err := p.Stop(); err != nil && err.Error() != "signal: terminated" {
		return err
	}
	return nil
}

// ReadCopies asks a server of kind Copy for size bytes, again and again. The
// result is never nil: after an error it holds what was read before.
func ReadCopies(addr netip.AddrPort, size int64, d time.Duration) (*Result, error) {
	r := new(Result)
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		return r, err
	}
	defer c.Close()
	buf := make([]byte, 256<<10)
	for begun := time.Now(); r.Elapsed < d; r.Elapsed = time.Since(begun) {
		start := time.Now()
		if err := binary.Write(c, binary.BigEndian, size); err != nil {
			return r, err
		}
		for left := size; left > 0; {
			n, err := c.Read(buf)
			if err != nil {
				return r, err
			}
			left -= int64(n)
		}
		r.Times.Add(time.Since(start))
		r.Count++
	}
	return r, nil
}
