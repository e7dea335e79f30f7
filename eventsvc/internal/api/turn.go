package api

import (
	"context"
	"runtime"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// turn is the place of one request.
type turn struct {
	*turns
	class class
	of    *account
	began time.Time // to work; zero: it does not. Guarded by mu, because a slow write ends by itself
	large bool      // its body is
}

// enter counts a request in. It has to resume before it works, but for a read
// that need not wait for its turn: it does.
func (t *turns) enter(c class, client string) (*turn, error) {
	t.mu.Lock()
	a := t.account(client)
	var limit string
	switch {
	case a.inFlight >= t.maxPerClient:
		limit = "client-requests"
	case t.inFlight >= t.max && a.inFlight > 0:
		limit = "requests"
	}
	if limit != "" {
		t.mu.Unlock()
		// Nothing was done yet, so that the client may safely try again.
		return nil, beyond(limit, apierrors.NewTooManyRequests("too many requests are in flight, please try again", 1))
	}
	a.inFlight++
	t.inFlight++
	a.charge(costs[c])
	u := &turn{turns: t, class: c, of: a}
	if c == reads && t.atOnce(a, c) {
		u.began = time.Now()
	}
	t.mu.Unlock()
	return u, nil
}

// begin waits for the turn of a watch to send the state that it begins with.
// How many watches there are is bounded elsewhere.
func (t *turns) begin(ctx context.Context, client string) (*turn, error) {
	t.mu.Lock()
	u := &turn{turns: t, class: watchStarts, of: t.account(client)}
	t.mu.Unlock()
	return u, u.resume(ctx)
}

// leave counts the request out.
func (u *turn) leave() {
	u.pause()
	if u.large {
		<-u.of.large
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inFlight--
	if u.of.inFlight--; u.of.inFlight == 0 {
		u.admitAll() // nobody has to leave anything to it any more
	}
}

// charge counts work that was done out of turn.
func (u *turn) charge(worked time.Duration) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of.charge(worked)
}

// hold waits until another large body of the client may be in memory, where it
// may be until the request ends, and for the client's turn to have the next piece
// of it read. Whatever is ready to run goes first.
func (u *turn) hold(ctx context.Context) error {
	if u == nil {
		return nil
	}
	if !u.large {
		u.mu.Lock()
		if u.of.large == nil {
			u.of.large = make(chan struct{}, largeBodies)
		}
		u.mu.Unlock()
		select {
		case u.of.large <- struct{}{}:
			u.large = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	runtime.Gosched()
	defer u.pause() // what is read is charged instead, for it comes as it comes
	return u.resume(ctx)
}

// pause ends the request's work for a while. The next in turn goes on.
func (u *turn) pause() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.began.IsZero() {
		return
	}
	worked := time.Since(u.began)
	u.of.used += max(worked-leastUse, 0)
	u.of.spent += worked
	u.began = time.Time{}
	u.stop(u.of, u.class)
}

// writing writes to the client, which is work until the client turns out to be
// slow.
func (u *turn) writing(write func() error) error {
	if u == nil || u.aloneNow() {
		u.pause() // nobody else wants to be spared the rest
		return write()
	}
	defer time.AfterFunc(slowWrite, u.pause).Stop()
	return write()
}

// aloneNow is alone for who does not hold the lock.
func (u *turn) aloneNow() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.alone(u.of)
}

// resume waits for the request's turn.
func (u *turn) resume(ctx context.Context) error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	if !u.began.IsZero() {
		u.mu.Unlock()
		return nil
	}
	u.of = u.account(u.of.client) // that of a watch may have been closed meanwhile
	ready := u.wait(u.of, u.class)
	if ready == nil {
		u.began = time.Now()
		u.mu.Unlock()
		return nil
	}
	u.mu.Unlock()
	var err error
	select {
	case <-ready: // which counts more than that ctx has ended
	default:
		select {
		case <-ready:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		u.began = time.Now()
	case !u.forget(u.of, u.class, ready): // its turn has just come
		u.stop(u.of, u.class)
	}
	return err
}

type turnKey struct{}

// turnOf is the turn of the request that ctx belongs to, nil if it has none.
func turnOf(ctx context.Context) *turn {
	u, _ := ctx.Value(turnKey{}).(*turn)
	return u
}
