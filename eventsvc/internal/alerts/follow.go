package alerts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/safefile"
)

// Source is which events of a server are looked at.
type Source struct {
	*client.Client
	Path    string // of the events
	Query   url.Values
	Console string // its address, for links
}

// Config are the settings of a [Watcher].
type Config struct {
	Source   Source
	To       []*client.Client // Alertmanagers
	Cursor   string           // file
	Wait     time.Duration    // how long an alert that is over waits for an Alertmanager
	Log      *slog.Logger
	Registry prometheus.Registerer
}

const (
	checkEvery = 5 * time.Second // between questions for the version of the server
	saveEvery  = time.Second
	batch      = 200 // alerts of one request
)

// Watcher makes alerts of events and sends them. It is safe for concurrent use.
type Watcher struct {
	Config
	told, failures, lost *prometheus.CounterVec
	gaps                 prometheus.Counter
	wake                 []chan struct{} // of the senders

	mu      sync.Mutex
	state   state
	mark    *mark // a version that the server had at a time; nil: none is waited for
	changed bool  // since the last save
	failing map[string]error
}

// state is what the file of the cursor has.
type state struct {
	Version  string    // up to which everything of the server is seen
	Complete time.Time // the server had no more at this time
	book
}

type mark struct {
	version string
	at      time.Time
}

// New returns a watcher that goes on where the file of the cursor says; without one it begins with what happens next.
func New(c Config, rules []*Rule) (*Watcher, error) {
	w := &Watcher{Config: c, failing: map[string]error{c.Source.Server(): errors.New("not asked yet")}}
	w.state.book = newBook(nil, c.Source.Console)
	text, err := os.ReadFile(c.Cursor)
	if err == nil {
		err = json.Unmarshal(text, &w.state)
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; without the file, eventsvc alerts begins with what happens next", c.Cursor, err)
	}
	for _, to := range c.To {
		w.failing[to.Server()] = errors.New("not asked yet")
		w.wake = append(w.wake, make(chan struct{}, 1))
	}
	w.register()
	w.Use(rules)
	return w, nil
}

// Use puts rules into force. Alerts of a rule that is gone are over.
func (w *Watcher) Use(rules []*Rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.rules = rules
	for _, r := range rules {
		w.told.WithLabelValues(r.Name) // begins at 0
	}
}

// Ready reports whether the server answers. An Alertmanager that is away is waited for, and told by the metrics.
func (w *Watcher) Ready(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failing[w.Source.Server()]
}

// Run watches and sends until ctx ends.
func (w *Watcher) Run(ctx context.Context) (err error) {
	ctx, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	for i := range w.To {
		others.Go(func() { w.send(ctx, i) })
	}
	others.Go(func() { w.check(ctx) })
	others.Go(func() { w.keep(ctx) })
	for err == nil {
		w.mu.Lock()
		version := w.state.Version
		w.mu.Unlock()
		err = w.Source.Follow(ctx, w.Source.Path, version, w.Source.Query, client.Follower{
			Connected: func() { w.note(w.Source.Client, nil) }, Change: w.change, Interrupted: func(err error) { w.note(w.Source.Client, err) },
		})
		if client.Gone(err) || errors.Is(err, client.ErrRewound) {
			err = w.catchUp(ctx, version, err)
		}
	}
	return err
}

// change takes a frame of the watch into account.
func (w *Watcher) change(c client.Change) error {
	var ev eventsv1.Event
	if c.Seen() {
		if err := json.Unmarshal(c.Object, &ev); err != nil {
			return fmt.Errorf("%s sent what is no event: %w", w.Source.Server(), err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Seen() {
		w.state.observe(&ev, c.Type == watch.Added, time.Now())
	}
	w.reached(c.Version)
	return nil
}

// reached moves the cursor to a version. The caller holds mu.
func (w *Watcher) reached(version string) {
	w.state.Version, w.changed = version, true
	if w.mark != nil && !client.Newer(w.mark.version, version) {
		w.state.Complete, w.mark = w.mark.at, nil
		w.state.advance(w.state.Complete)
	}
	for _, wake := range w.wake {
		select {
		case wake <- struct{}{}:
		default: // it is told already
		}
	}
}

// check asks the server for its version from time to time. Once the cursor has reached that, everything up to then is
// known.
func (w *Watcher) check(ctx context.Context) {
	for client.Sleep(ctx, checkEvery) == nil {
		asked := time.Now()
		version, err := w.Source.Version(ctx, w.Source.Path)
		w.mu.Lock()
		if err == nil && w.mark == nil && w.state.Version != "" && !client.Newer(w.state.Version, version) {
			w.mark = &mark{version, asked}
			w.reached(w.state.Version)
		}
		if lost := w.state.clean(asked, w.Wait); lost > 0 {
			w.lost.WithLabelValues().Add(float64(lost))
			w.Log.ErrorContext(ctx, "alerts are given up: no Alertmanager has taken them in time, or there are too many", "alerts", lost, "waited", w.Wait, "most", maxAlerts)
		}
		w.mu.Unlock()
	}
}

// catchUp begins at the present version of the server. Unless this is the first start, it takes into account what the
// server still has of what was missed, and says so.
func (w *Watcher) catchUp(ctx context.Context, before string, why error) error {
	var backoff client.Backoff
	begun := time.Now()
	w.mu.Lock()
	from, b := w.state.Complete, newBook(w.state.rules, "")
	w.mu.Unlock()
	if before == "" {
		b.rules = nil
	}
	events, version, err := w.Source.list(ctx, b.rules, func(ev *eventsv1.Event) bool {
		return client.Newer(ev.ResourceVersion, before) && client.Gone(why) || event.LastSeen(ev).After(from) && !client.Gone(why)
	}, func(err error) error {
		if !client.Retryable(err) {
			return err
		}
		w.note(w.Source.Client, err)
		return backoff.Wait(ctx, err)
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range events {
		w.state.observe(ev, true, begun)
	}
	w.mark = &mark{version, begun}
	if before != "" {
		w.gaps.Inc()
		w.Log.WarnContext(ctx, "events were missed", "from", from, "to", begun, "reason", why)
		labels := map[string]string{nameLabel: "EventsMissed", "severity": "warning"}
		w.state.Alerts[keyOf(labels)] = &alert{Labels: labels, span: span{from, begun.UTC()}, Link: w.Source.Console, Annotations: map[string]string{
			"summary":     fmt.Sprintf("Nobody was told of what came and went between %s and %s", from.Format(time.RFC3339), begun.UTC().Format(time.RFC3339)),
			"description": plain(why.Error(), maxNote),
		}}
	}
	w.reached(version)
	return nil
}

// list returns the events that rules are about, and that are wanted, in the order in which they were last seen.
func (s Source) list(ctx context.Context, rules []*Rule, wanted func(*eventsv1.Event) bool, again func(error) error) (all []*eventsv1.Event, version string, err error) {
	version, err = s.Pages(ctx, s.Path, s.Query, func(page *client.Page) error {
		for _, item := range page.Items {
			ev := new(eventsv1.Event)
			if err := json.Unmarshal(item, ev); err != nil {
				return fmt.Errorf("%s sent what is no event: %w", s.Server(), err)
			}
			about := event.SubjectOf(ev)
			if wanted(ev) && slices.ContainsFunc(rules, func(r *Rule) bool { begins, ends := r.matches(about); return begins || ends }) {
				all = append(all, ev)
			}
		}
		return nil
	}, again)
	slices.SortStableFunc(all, func(a, b *eventsv1.Event) int { return event.LastSeen(a).Compare(event.LastSeen(b)) })
	return all, version, err
}

// Try returns what rules would have sent since a time, in the order in which alerts begin. Of a series only the last
// state is known: its observations count as spread evenly.
func Try(ctx context.Context, s Source, rules []*Rule, since time.Time) (all []Alert, err error) {
	b, now := newBook(rules, s.Console), time.Now()
	events, _, err := s.list(ctx, rules, func(ev *eventsv1.Event) bool { return event.LastSeen(ev).After(since) }, func(err error) error { return err })
	for _, ev := range events {
		b.observe(ev, true, now)
	}
	b.advance(now)
	for _, a := range b.Alerts {
		all = append(all, a.times()...)
	}
	all = slices.DeleteFunc(all, func(a Alert) bool { return !a.StartsAt.After(since) })
	slices.SortFunc(all, func(a, b Alert) int {
		return cmp.Or(a.StartsAt.Compare(b.StartsAt), cmp.Compare(keyOf(a.Labels), keyOf(b.Labels)))
	})
	return all, err
}

// keep writes the file of the cursor when it has changed, and a last time at the end.
func (w *Watcher) keep(ctx context.Context) {
	for ended, pause := false, saveEvery; !ended; {
		ended = client.Sleep(ctx, pause) != nil
		w.mu.Lock()
		var text []byte
		if w.changed {
			text, _ = json.Marshal(&w.state) // texts, numbers and times: no error
		}
		w.changed = false
		w.mu.Unlock()
		if text == nil {
			continue
		}
		begun := time.Now()
		if err := safefile.Write(w.Cursor, text); err != nil {
			w.mu.Lock()
			w.changed = true
			w.mu.Unlock()
			w.Log.ErrorContext(ctx, "the cursor cannot be written: after a restart, alerts are sent again", "file", w.Cursor, "error", err)
		}
		pause = max(saveEvery, 20*time.Since(begun)) // a large one takes a small part of the time
	}
}

// send sends alerts to one Alertmanager until ctx ends.
func (w *Watcher) send(ctx context.Context, i int) {
	var backoff client.Backoff
	to, sent := w.To[i], map[string]delivery{}
	for ctx.Err() == nil {
		alerts, due := w.due(sent, time.Now())
		if len(alerts) == 0 {
			select {
			case <-ctx.Done():
			case <-w.wake[i]:
			case <-time.After(checkEvery):
			}
			continue
		}
		err := to.Do(ctx, client.Request{Method: http.MethodPost, Path: "/api/v2/alerts", Body: alerts}, nil)
		if ctx.Err() != nil {
			return
		}
		w.note(to, err)
		if err != nil {
			_ = backoff.Wait(ctx, err) // the loop sees the end of ctx
			continue
		}
		backoff.Reset()
		w.taken(sent, due)
	}
}

// delivery is what is sent of an alert to one Alertmanager.
type delivery struct {
	span
	closed bool
	minute int64
}

// due returns what is to be sent at a time: alerts that have begun or ended since, and the others once a minute.
func (w *Watcher) due(sent map[string]delivery, now time.Time) (all []Alert, due map[string]delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	due = map[string]delivery{}
	for key, a := range w.state.Alerts {
		if a.Starts.IsZero() || len(all) >= batch {
			continue
		}
		alerts, closed := w.state.post(a, now)
		d := delivery{a.span, closed, now.Unix() / int64(resend/time.Second)}
		if sent[key] == d {
			continue
		}
		if a.Waits.IsZero() {
			a.Waits = now
		}
		all, due[key] = append(all, alerts...), d
	}
	return all, due
}

// taken notes that an Alertmanager has taken alerts.
func (w *Watcher) taken(sent, now map[string]delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = true
	for key, d := range now {
		sent[key] = d
		a := w.state.Alerts[key]
		if a == nil || a.Starts != d.Starts {
			continue
		}
		if a.Told.IsZero() {
			a.Told, a.Earlier = time.Now(), nil
			w.told.WithLabelValues(a.Labels[nameLabel]).Inc()
		}
		if d.closed && a.Closed.IsZero() {
			a.Closed = time.Now()
		}
	}
	for key := range sent {
		if w.state.Alerts[key] == nil {
			delete(sent, key)
		}
	}
}

// note keeps the last failure of a side, nil after a success. It logs the first one, and the end.
func (w *Watcher) note(of *client.Client, err error) {
	w.mu.Lock()
	before := w.failing[of.Server()]
	w.failing[of.Server()] = err
	w.mu.Unlock()
	if err != nil {
		w.failures.WithLabelValues(of.Server(), fmt.Sprint(client.Code(err))).Inc()
	}
	if (err == nil) != (before == nil) {
		w.Log.Info("the connection has changed", "to", of.Server(), "error", err)
	}
}

// register makes the metrics.
func (w *Watcher) register() {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		w.Registry.MustRegister(c)
		return c
	}
	w.told = vec("eventsvc_alerts_told_total", "Alerts that an Alertmanager has taken, each once.", "rule")
	w.failures = vec("eventsvc_alerts_failures_total", "Requests that failed and are tried again, by status code; 0: no answer.", "to", "code")
	w.lost = vec("eventsvc_alerts_lost_total", "Alerts that nobody was told of: no Alertmanager has taken them within --wait, or there were 10,000.")
	w.lost.WithLabelValues()
	w.gaps = vec("eventsvc_alerts_gaps_total", "Times after which events may be missed, because the server no longer kept them.").WithLabelValues()
	gauge := func(name, help string, value func() time.Duration) {
		w.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return value().Seconds()
		}))
	}
	started := time.Now()
	gauge("eventsvc_alerts_lag_seconds", "Time since everything that the server had was known to be seen.", func() time.Duration {
		return time.Since(cmp.Or(w.state.Complete, started))
	})
	gauge("eventsvc_alerts_waiting_seconds", "How long the oldest alert waits that no Alertmanager has taken; 0: there is none.", func() (most time.Duration) {
		for _, a := range w.state.Alerts {
			if a.Told.IsZero() && !a.Waits.IsZero() {
				most = max(most, time.Since(a.Waits))
			}
		}
		return most
	})
}
