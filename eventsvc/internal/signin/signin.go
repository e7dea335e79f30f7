// Package signin finds where people sign in to the console: it asks the issuers whose entries have a block console for
// their endpoints, so that the page does not have to.
//
// # Contract
//
// Run [Finder.Run]. It gives [Config.Found] the providers, in the order of the entries, as soon as it begins, whenever
// something about them has become known, and after [Finder.Recheck] if entries have changed. A provider that has not
// answered is listed as unavailable. It is asked again, at first soon and then every 15 seconds; one that has answered
// every hour, and keeps its endpoints while it does not answer. Each is asked for itself, so that a slow one delays no
// other.
//
// # Concurrency
//
// All methods are safe for concurrent use. Found is called by Run alone, once at a time.
//
// # What it does not know
//
// The flow, which is the page's, and tokens, which package trust verifies.
package signin

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"tidings.example/eventsvc/internal/console"
	"tidings.example/eventsvc/internal/trust"
	"tidings.example/shared/bearer"
)

// Config are the settings of a [Finder]. All but ClockSkew are required.
type Config struct {
	Issuers   func() []trust.Issuer        // those in force
	ClockSkew time.Duration                // by which their clocks may differ
	Found     func([]console.SignIn) error // takes the providers, or says why one cannot be used
	Log       *slog.Logger
}

// Finder finds the endpoints of providers.
type Finder struct {
	c       Config
	changed chan struct{}
}

// New returns a finder.
func New(c Config) *Finder { return &Finder{c: c, changed: make(chan struct{}, 1)} }

// Recheck says that the issuers in force may have changed.
func (f *Finder) Recheck() {
	select {
	case f.changed <- struct{}{}:
	default: // Run has not looked since the last time
	}
}

// What everybody may read about a provider that cannot be used. Why it is so can name addresses, and is for the log.
const (
	notYet = "eventsvc has not read its metadata yet. Wait a moment."
	failed = "eventsvc cannot read its metadata, and tries again. The log of eventsvc says why."
)

// metadataKey says whose metadata is read, and how its certificate is verified.
type metadataKey struct{ issuer, caFile string }

func keyOf(i trust.Issuer) metadataKey { return metadataKey{i.Issuer, i.CAFile} }

// provider is what is known of one.
type provider struct {
	endpoints bearer.Endpoints
	missing   string // why there are no endpoints
	stop      context.CancelFunc
}

// answer is what a provider has answered.
type answer struct {
	from      metadataKey
	endpoints bearer.Endpoints
	err       error
}

// Run asks providers until ctx ends. It always returns nil.
func (f *Finder) Run(ctx context.Context) error {
	var asking sync.WaitGroup
	defer asking.Wait()
	answers := make(chan answer)
	known := map[metadataKey]*provider{}
	for {
		f.tend(ctx, known, answers, &asking)
		f.tell(known)
		select {
		case <-ctx.Done():
			return nil
		case <-f.changed:
		case a := <-answers:
			if p := known[a.from]; p != nil {
				p.take(a, f.c.Log)
			}
		}
	}
}

func (p *provider) take(a answer, log *slog.Logger) {
	switch {
	case a.err == nil:
		if p.missing != "" {
			log.Info("people can sign in to the console at an issuer", "issuer", a.from.issuer)
		}
		p.endpoints, p.missing = a.endpoints, ""
	case p.missing == notYet:
		log.Warn("people cannot sign in to the console at an issuer, whose metadata cannot be read", "issuer", a.from.issuer, "error", a.err)
		p.missing = failed
	}
}

// tend starts to ask new providers, and no longer asks those that are gone.
func (f *Finder) tend(ctx context.Context, known map[metadataKey]*provider, answers chan<- answer, asking *sync.WaitGroup) {
	wanted := map[metadataKey]bool{}
	for _, i := range f.c.Issuers() {
		if i.Console == nil {
			continue
		}
		at := keyOf(i)
		wanted[at] = true
		if known[at] != nil {
			continue
		}
		alone, stop := context.WithCancel(ctx)
		known[at] = &provider{missing: notYet, stop: stop}
		asking.Go(func() { ask(alone, at, answers) })
	}
	for at, p := range known {
		if !wanted[at] {
			p.stop()
			delete(known, at)
		}
	}
}

// ask asks a provider again and again.
func ask(ctx context.Context, at metadataKey, answers chan<- answer) {
	const first, longest, later = 250 * time.Millisecond, 15 * time.Second, time.Hour
	for wait := first; ; {
		endpoints, err := bearer.DiscoverEndpoints(ctx, at.issuer, bearer.KeySource{CAFile: at.caFile})
		select {
		case <-ctx.Done():
			return
		case answers <- answer{at, endpoints, err}:
		}
		pause := later
		if err != nil {
			pause, wait = wait, min(2*wait, longest)
		} else {
			wait = first
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// tell tells what is known.
func (f *Finder) tell(known map[metadataKey]*provider) {
	var all []console.SignIn
	for _, i := range f.c.Issuers() {
		p := known[keyOf(i)]
		if i.Console == nil || p == nil {
			continue
		}
		all = append(all, console.SignIn{
			Issuer: i.Issuer, Name: i.Console.Name, ClientID: i.Console.ClientID, Scopes: i.Console.Scopes, Token: i.Console.Token,
			Parameters: i.Console.Parameters, AuthorizationEndpoint: p.endpoints.Authorization, TokenEndpoint: p.endpoints.Token,
			EndSessionEndpoint: p.endpoints.EndSession, RevocationEndpoint: p.endpoints.Revocation, IssRequired: p.endpoints.NamesItself,
			Unavailable: p.missing,
			Accepts: console.Accepts{
				Bytes: bearer.MaxToken, Audiences: i.Audiences, Claims: i.Claims,
				Life: int64(cmp.Or(time.Duration(i.MaxTokenLife), bearer.DefaultMaxLife).Seconds()), ClockSkew: int64(f.c.ClockSkew.Seconds()),
			},
		})
	}
	if err := f.c.Found(all); err != nil {
		f.c.Log.Error("the page does not learn of changes in sign-in", "error", err)
	}
}
