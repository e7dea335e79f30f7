// Package access decides which requests are let in, and how many at a time.
//
// # Contract
//
// [Guard.Allow] wraps the handler of a verb: the policy allows the request, the audit
// log can be written if it is a write, and the request has a seat of fair queueing
// while it computes. A new route is wrapped by it, or by [Guard.Seated] if every
// caller may use it. The handler gets a [Grant]: the policy may allow the events of some
// clusters only, and it must not tell of others. [Store] is the store that handlers use: it
// takes and yields the seat, so that no handler can forget to.
//
// What one caller may take: seats.go, requests in progress (package flow has the queues); rates.go, new events in a
// second; package stream counts open watches, and flow/room.go counts answers that nobody reads.
//
// The other files: authorize.go asks the policy, grant.go and readable.go say what of an answer a caller may see,
// impersonate.go refuses Impersonate headers, refuse.go answers 401 and 403. A 429 with Retry-After is back-pressure: a
// rate limit of creates (rates.go), no seat (seats.go), or answers that the client does not read (flow/room.go).
//
// # Errors
//
// All refusals are API errors: 401, 403, 429, and 503 for writes that cannot be
// audited. [Guard.Refuse] answers requests whose token is refused.
//
// # Concurrency
//
// A Guard is safe for concurrent use.
package access

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/resource"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
)

// Guard lets requests in.
type Guard struct {
	Policy func() *policy.Policy // who may do what, as it is now
	// Fresh makes the store show every write that was acknowledged before.
	Fresh func(context.Context) (age time.Duration, err error)
	// Resource is what a 403 for a scope that is missing refers to.
	Resource *resource.Server

	audit     *audit.Log
	scheduler *flow.Scheduler
	rates     createRates
	now       func() time.Time
}

// New returns a guard for so many requests in flight, in all and of each client. The
// audit log may be nil.
func New(p func() *policy.Policy, log *audit.Log, requests, clientRequests int, rates Rates, now func() time.Time) *Guard {
	return &Guard{
		Policy: p, audit: log, rates: newCreateRates(rates), now: now,
		scheduler: flow.New(requests, clientRequests, runtime.GOMAXPROCS(0)),
	}
}

// Collectors returns the metrics of requests in flight and of create rates.
func (g *Guard) Collectors() []prometheus.Collector {
	return append(g.scheduler.Collectors(), g.rates.gauge())
}

// Room is the room of an answer to a client that goes on after its request has released its
// seat. The caller must free it.
func (g *Guard) Room(client string) *flow.Room { return g.scheduler.Room(client) }

// Caller returns who calls, or a 401 if nobody knows.
func Caller(ctx context.Context) (*bearer.Caller, error) {
	caller, known := bearer.FromContext(ctx)
	if !known {
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	return caller, nil
}

// Client names the caller of a request, for limits per client.
func Client(r *http.Request) string {
	if caller, ok := bearer.FromContext(r.Context()); ok {
		return caller.Issuer + "\x00" + caller.Subject
	}
	return ""
}
