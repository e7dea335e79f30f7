// Package issuers keeps the issuers that a service trusts, each with a verifier and keys of its own, and follows the
// file that lists them.
//
// # Contract
//
// [New] reads the file; a mistake in it is an error. [Live.Run] keeps the keys fresh and reads the file again when it
// changes. A new version replaces the set of issuers as a whole, or changes nothing if it has a mistake:
//
//	entry is the same            verifier, remembered tokens and keys stay
//	keys come from the same URL  keys stay, the tokens are verified again by the new rules
//	other algorithms             the fetched keys are read again for these
//	keys come from elsewhere     the keys are fetched as at the start of the service
//	entry is gone                its tokens are refused, its keys are no longer fetched
//
// A [Set] does not change. Whoever verifies a token with it looks afterwards whether [Live.Current] is still the same,
// and verifies again if it is not, so that no token of a removed issuer passes while keys are waited for.
package issuers

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/shared/livefile"
)

// maxFile is the largest file of issuers in bytes.
const maxFile = 1 << 20

// Settings are what a service is told about one issuer, in its file of issuers or by other settings.
type Settings interface {
	From() (issuer string, keys bearer.KeySource)
}

// Config are the settings of a [Live]. Fixed or Path, Parse, Keys, Verifier and Log are required.
type Config[E Settings] struct {
	Fixed    []E                                                   // issuers of other settings, which never change
	Path     string                                                // of the file with more issuers; empty: none
	Pod      Pod                                                   // an entry may mean its cluster; a new issuer of its tokens counts as a change of the file
	Setting  string                                                // where Path is from, for errors
	Parse    func(data []byte) ([]E, error)                        // reads a version of the file
	Keys     func(E) (*bearer.IssuerKeys, error)                   // of an issuer
	Verifier func(E, *bearer.IssuerKeys) (*bearer.Verifier, error) // of an issuer's tokens
	Added    func(E)                                               // called for each entry in force that is new or has changed; may be nil
	Changed  func()                                                // called after a later version of the file has come into force; may be nil
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Issuer is a trusted issuer.
type Issuer[E Settings] struct {
	Settings E
	Verifier *bearer.Verifier
	keys     *bearer.IssuerKeys
	unused   bool // keys were made for this entry, and may be kept until the rest of the file is good
}

// Live holds the issuers in force and follows their file. It is safe for concurrent use.
type Live[E Settings] struct {
	c        Config[E]
	fixed    []*Issuer[E]
	current  atomic.Pointer[Set[E]]
	file     *livefile.File
	replaced chan struct{} // tells Run that current has changed
	spare    []*Issuer[E]  // of the last version of the file, which has a mistake in another entry
}

// New sets up the issuers. An error names the file and the entry.
func New[E Settings](c Config[E]) (*Live[E], error) {
	l := &Live[E]{c: c, replaced: make(chan struct{}, 1)}
	for _, e := range c.Fixed {
		i, err := l.setUp(e)
		if err != nil {
			return nil, err
		}
		l.fixed = append(l.fixed, i)
	}
	if c.Path == "" {
		if err := l.put(l.fixed); err != nil {
			return nil, err
		}
	}
	var err error
	l.file, err = livefile.Open(livefile.Config{
		Path: c.Path, MaxBytes: maxFile, Apply: l.apply, Beside: c.Pod.mounted, Metric: "issuers", What: "issuers",
		Changed: c.Changed, Log: c.Log, Registry: c.Registry,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Setting, err)
	}
	return l, nil
}

// Current returns the issuers in force.
func (l *Live[E]) Current() *Set[E] { return l.current.Load() }

// Reload reads the file and puts it into force if it is new and good.
func (l *Live[E]) Reload() { l.file.Reload() }

// apply puts a version of the file into force.
func (l *Live[E]) apply(data []byte) error {
	entries, err := l.c.Parse(data)
	if err != nil {
		return err
	}
	list, listed := slices.Clone(l.fixed), map[string]bool{}
	for n, e := range entries {
		name, _ := e.From()
		switch {
		case listed[name]:
			return fmt.Errorf("entry %d: issuer %q is listed twice", n+1, name)
		case find(l.fixed, name) != nil:
			return fmt.Errorf("entry %d: issuer %q is trusted by another setting already: leave it out", n+1, name)
		}
		listed[name] = true
		i, err := l.setUp(e)
		if err != nil {
			l.spare = slices.DeleteFunc(list, func(i *Issuer[E]) bool { return !i.unused })
			return fmt.Errorf("entry %d: %w", n+1, err)
		}
		list = append(list, i)
	}
	l.spare = nil
	return l.put(list)
}

// setUp returns the issuer of an entry, with as much of the present one as the entry allows.
func (l *Live[E]) setUp(e E) (*Issuer[E], error) {
	name, _ := e.From()
	for _, i := range []*Issuer[E]{l.Current().Find(name), find(l.spare, name)} {
		if i != nil && reflect.DeepEqual(i.Settings, e) {
			return i, nil
		}
	}
	next := &Issuer[E]{Settings: e}
	err := l.setKeys(next, l.Current().Find(name))
	if err == nil {
		next.Verifier, err = l.c.Verifier(e, next.keys)
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

// setKeys gives an issuer its keys: the keys of its old entry if both entries name the same place.
func (l *Live[E]) setKeys(next, old *Issuer[E]) (err error) {
	if old != nil {
		_, before := old.Settings.From()
		_, now := next.Settings.From()
		if reflect.DeepEqual(before, now) {
			next.keys = old.keys
			return nil
		}
		algorithms := now.Algorithms
		before.Algorithms, now.Algorithms = nil, nil
		if now.JWKSFile == "" && reflect.DeepEqual(before, now) {
			next.keys, err = old.keys.WithAlgorithms(algorithms)
			return err
		}
	}
	next.unused = true
	next.keys, err = l.c.Keys(next.Settings)
	return err
}

// put puts issuers into force.
func (l *Live[E]) put(list []*Issuer[E]) error {
	next, err := newSet(list)
	if err != nil {
		return err
	}
	before := l.current.Swap(next)
	select {
	case l.replaced <- struct{}{}:
	default: // Run has not looked since the last time
	}
	for _, i := range list {
		if l.c.Added != nil && (before == nil || !slices.Contains(before.list, i)) {
			l.c.Added(i.Settings)
		}
	}
	return nil
}

// Run keeps the keys of the issuers in force fresh and follows the file, until ctx ends. It always returns nil.
func (l *Live[E]) Run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	if l.file != nil {
		tasks.Go(func() { _ = l.file.Run(ctx) })
	}
	running := map[*bearer.IssuerKeys]context.CancelFunc{}
	for {
		l.tend(ctx, running, &tasks)
		select {
		case <-ctx.Done():
			return nil
		case <-l.replaced:
		}
	}
}

// tend starts to keep the keys of new issuers fresh, and ends this for the keys that are no longer in force.
func (l *Live[E]) tend(ctx context.Context, running map[*bearer.IssuerKeys]context.CancelFunc, tasks *sync.WaitGroup) {
	wanted := l.Current().keys()
	for keys, end := range running {
		if !slices.Contains(wanted, keys) {
			end()
			delete(running, keys)
		}
	}
	for _, keys := range wanted {
		if running[keys] != nil {
			continue
		}
		alone, end := context.WithCancel(ctx)
		running[keys] = end
		tasks.Go(func() {
			_ = keys.Run(alone)
			if ctx.Err() == nil {
				keys.Retire(l.Current().keys())
			}
		})
	}
}

// Ready returns nil if tokens can be verified. The keys of one issuer are enough, so that the outage of another does
// not stop the service.
func (l *Live[E]) Ready(ctx context.Context) error { return l.Current().ready(ctx) }
