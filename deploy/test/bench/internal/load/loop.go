package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// readSize is the read buffer that all connections of a loop share.
const readSize = 256 << 10

// Loop serves any number of connections and timed actions from one thread.
type Loop struct {
	epoll, timer int
	start        time.Time
	armed        time.Duration // when the timer fires
	conns        map[int32]*conn
	timed        []timed
	buf, clear   []byte // what arrived, and what TLS made of it
	events       []unix.EpollEvent
}

// timed is something that acts at given times.
type timed interface {
	// due is when it next wants to act, as time since the loop's start, and
	// false when it has nothing to do.
	due() (time.Duration, bool)
	// act does what is due at now.
	act(now time.Duration) error
}

// receiver is the owner of one connection.
type receiver interface {
	// receive is handed what arrived; p is only valid during the call.
	receive(p []byte, now time.Duration) error
	// closed tells that the peer ended the connection, with nil for an orderly
	// end. An error returned from it ends the run.
	closed(err error) error
}

// NewLoop makes a loop without connections.
func NewLoop() (*Loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("timerfd: %w", err), unix.Close(epoll))
	}
	l := &Loop{
		epoll: epoll, timer: timer, start: time.Now(), conns: make(map[int32]*conn),
		buf: make([]byte, readSize), events: make([]unix.EpollEvent, 256),
	}
	return l, l.watch(unix.EPOLL_CTL_ADD, timer, unix.EPOLLIN)
}

// Close closes every connection.
func (l *Loop) Close() {
	for _, c := range l.conns {
		c.close()
	}
	_ = unix.Close(l.timer)
	_ = unix.Close(l.epoll)
}

// Now is the time since the loop was made.
func (l *Loop) Now() time.Duration { return time.Since(l.start) }

// Run serves until the time is over or done says so; done is asked after each
// round of events and may be nil.
func (l *Loop) Run(d time.Duration, done func() bool) error {
	end := l.Now() + d
	for {
		now, err := l.act()
		if err != nil || now >= end || done != nil && done() {
			return err
		}
		if err := l.arm(end, now); err != nil {
			return err
		}
		n, err := unix.EpollWait(l.epoll, l.events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for i := range max(n, 0) {
			if err := l.serve(&l.events[i]); err != nil {
				return err
			}
			// A round can serve hundreds of connections; what falls due
			// meanwhile must not wait for the last of them.
			if _, err := l.act(); err != nil {
				return err
			}
		}
	}
}

// act lets everything act that is due.
func (l *Loop) act() (time.Duration, error) {
	now := l.Now()
	for _, t := range l.timed {
		if due, ok := t.due(); ok && due <= now {
			if err := t.act(now); err != nil {
				return now, err
			}
		}
	}
	return now, nil
}

// arm sets the timer to the next due time, or to the end of the run. A timer
// in the epoll set is exact to some ten microseconds, where the runtime's own
// would round a short sleep up to a millisecond.
func (l *Loop) arm(next, now time.Duration) error {
	for _, t := range l.timed {
		if due, ok := t.due(); ok {
			next = min(next, due)
		}
	}
	if next == l.armed && now < next {
		return nil
	}
	l.armed = next
	at := unix.NsecToTimespec(int64(max(next-now, 1)))
	if err := unix.TimerfdSettime(l.timer, 0, &unix.ItimerSpec{Value: at}, nil); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	return nil
}

// serve handles one event of the epoll set.
func (l *Loop) serve(ev *unix.EpollEvent) error {
	c := l.conns[ev.Fd]
	if c == nil {
		return nil // the timer, which act looks at; or closed earlier in this round
	}
	if ev.Events&unix.EPOLLOUT != 0 {
		if err := c.drained(); err != nil {
			return c.lost(err)
		}
	}
	if ev.Events&^unix.EPOLLOUT == 0 {
		return nil
	}
	n, err := unix.Read(c.fd, l.buf)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return nil
	case err != nil:
		return c.lost(err)
	case n == 0:
		return c.lost(nil)
	}
	if c.tls != nil {
		return c.open(l.buf[:n])
	}
	return c.owner.receive(l.buf[:n], l.Now())
}

func (l *Loop) watch(op, fd int, events uint32) error {
	if err := unix.EpollCtl(l.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// conn is one connection of a loop.
type conn struct {
	fd     int
	loop   *Loop
	owner  receiver
	unsent []byte

	pipe    *pipe // below tls; all three are nil over plain HTTP/1.1
	tls     *tls.Conn
	session *session
}

// dial connects to addr, with TLS and HTTP/2 where secure is set; the waits for
// the handshakes are on loopback and short.
func (l *Loop) dial(addr netip.AddrPort, secure *tls.Config, owner receiver) (*conn, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	c := &conn{fd: fd, loop: l, owner: owner}
	if err := c.connect(addr, secure); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", addr, err), unix.Close(fd))
	}
	l.conns[int32(fd)] = c
	return c, nil
}

func (c *conn) connect(addr netip.AddrPort, secure *tls.Config) error {
	err := unix.Connect(c.fd, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()})
	if err == nil {
		err = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err == nil && secure != nil {
		err = c.secure(secure)
	}
	if err == nil {
		err = unix.SetNonblock(c.fd, true)
	}
	if err == nil {
		err = c.loop.watch(unix.EPOLL_CTL_ADD, c.fd, unix.EPOLLIN)
	}
	return err
}

// ask sends a request, which is formatted as HTTP/1.1.
func (c *conn) ask(request []byte) error {
	if c.session != nil {
		return c.session.request(request)
	}
	return c.push(request)
}

// parse reads what arrived into a and tells whether the answer is complete.
func (c *conn) parse(a *Answer, p []byte) (bool, error) {
	if c.session != nil {
		return c.session.feed(a, p)
	}
	return a.feed(p)
}

// push sends p now, or keeps what the socket does not take until it does.
func (c *conn) push(p []byte) error {
	c.unsent = append(c.unsent, p...)
	return c.flush()
}

func (c *conn) flush() error {
	for len(c.unsent) > 0 {
		n, err := unix.Write(c.fd, c.unsent)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return c.loop.watch(unix.EPOLL_CTL_MOD, c.fd, unix.EPOLLIN|unix.EPOLLOUT)
		case err != nil:
			return fmt.Errorf("write: %w", err)
		}
		if n < len(c.unsent) {
			c.unsent = append(c.unsent[:0], c.unsent[n:]...)
			continue
		}
		c.unsent = c.unsent[:0]
	}
	return nil
}

// drained sends what was kept and, when all of it is gone, stops asking for room.
func (c *conn) drained() error {
	if err := c.flush(); err != nil || len(c.unsent) > 0 {
		return err
	}
	return c.loop.watch(unix.EPOLL_CTL_MOD, c.fd, unix.EPOLLIN)
}

// lost closes the connection and tells its owner.
func (c *conn) lost(err error) error {
	c.close()
	return c.owner.closed(err)
}

func (c *conn) close() {
	if c.loop.conns[int32(c.fd)] != c {
		return
	}
	delete(c.loop.conns, int32(c.fd))
	_ = unix.Close(c.fd)
}
