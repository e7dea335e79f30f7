package floor

import (
	"net/netip"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
)

// HelloSpec asks a server of kind Hello from 64 connections.
func HelloSpec(addr netip.AddrPort) load.Spec {
	request := []byte("GET /hello HTTP/1.1\r\nHost: " + addr.String() + "\r\n\r\n")
	return load.Spec{
		Addr: addr, Conns: 64,
		Next:  func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: load.Status(200),
	}
}

// Speedometer measures how fast the machine is at the moment. A virtual machine
// shares processors and memory with others, and nothing in /proc shows how much
// it gets. It runs a server of kind Hello, and asks it for a short time.
type Speedometer struct {
	process *proc.Process
	addr    netip.AddrPort
}

// How long it sends requests before it counts them, and how long it counts.
const (
	speedWarmUp = 100 * time.Millisecond
	speedTime   = 400 * time.Millisecond
)

// NewSpeedometer starts the server, with its log in dir. Stop ends it.
func NewSpeedometer(dir string) (*Speedometer, error) {
	p, addr, err := Start(dir, Hello)
	if err != nil {
		return nil, err
	}
	return &Speedometer{p, addr}, nil
}

// Stop ends the server.
func (s *Speedometer) Stop() error { return Stop(s.process) }

// Read returns requests per second.
func (s *Speedometer) Read() (float64, error) {
	l, err := load.NewLoop()
	if err != nil {
		return 0, err
	}
	defer l.Close()
	ld, err := l.NewLoad(HelloSpec(s.addr))
	if err != nil {
		return 0, err
	}
	ld.Start()
	if err := l.Run(speedWarmUp, nil); err != nil {
		return 0, err
	}
	ld.Reset()
	from := l.Now()
	if err := l.Run(speedTime, nil); err != nil {
		return 0, err
	}
	rate := float64(ld.Done) / (l.Now() - from).Seconds()
	if err := ld.Drain(); err != nil {
		return 0, err
	}
	return rate, ld.Failure
}
