package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/rules"
)

const (
	lateDrops   = 2 * time.Hour    // events that are older count in the hour that is so long ago
	reportEvery = 15 * time.Minute // between reports of an hour that is not over: each is a version that queries look at
)

// drop is what is counted: the changes that a rule dropped, of events that the source last wrote within an hour.
type drop struct {
	hour int64 // begin, in seconds since 1970
	rule string
}

// MarshalText makes a drop a key in JSON.
func (d drop) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d/%s", d.hour, d.rule), nil }

// UnmarshalText reads what MarshalText has written.
func (d *drop) UnmarshalText(text []byte) (err error) {
	hour, rule, _ := strings.Cut(string(text), "/")
	d.rule = rule
	d.hour, err = strconv.ParseInt(hour, 10, 64)
	return err
}

// drops are the counts of a copier. Those of the cursor's version are stored with it, so that a restart, which sees the
// changes behind that version again, counts each once. A report has the whole count of its hour, so it can be written
// again.
type drops struct {
	counts   map[drop]int64
	pending  map[drop]int64 // of the changes that are being written
	reported map[drop]report
}

// report is the last report of a drop.
type report struct {
	count int64
	at    time.Time
}

// factsOf returns what rules ask about an event of a cluster.
func factsOf(ev *corev1.Event, cluster string) (f rules.Facts) {
	for field, text := range map[rules.Field]string{
		rules.Type: ev.Type, rules.Reason: ev.Reason, rules.Kind: ev.InvolvedObject.Kind, rules.Name: ev.InvolvedObject.Name,
		rules.Namespace: ev.Namespace, rules.Reporter: event.Reporter(ev.ReportingController, ev.Source.Component), rules.Cluster: cluster,
	} {
		f[field] = []byte(text)
	}
	return f
}

// rules returns the rules as they are now.
func (m *Mirror) rules() *rules.Set {
	if m.Rules == nil {
		return nil
	}
	return m.Rules()
}

// drop reports whether a rule drops an item, and counts it then. Changes up to the cursor were counted before.
func (c *copier) drop(it *item) bool {
	set := c.rules()
	if !set.Drops() {
		return false
	}
	facts := factsOf(it.copy, c.Cluster)
	rule := set.Dropped(&facts)
	if rule == nil {
		return false
	}
	if c.cursor.version == "" || c.rewound || client.Newer(it.version, c.cursor.version) {
		now := time.Now()
		at := it.written
		if oldest := now.Add(-lateDrops); at.Before(oldest) {
			at = oldest
		} else if at.After(now) {
			at = now
		}
		if c.drops.pending == nil {
			c.drops.pending = map[drop]int64{}
		}
		c.drops.pending[drop{at.Truncate(time.Hour).Unix(), rule.Name}]++
	}
	return true
}

// dropped counts what was dropped among the changes that are written now.
func (c *copier) dropped() {
	for d, n := range c.drops.pending {
		c.metrics.dropped.WithLabelValues(d.rule).Add(float64(n))
		if c.drops.counts == nil {
			c.drops.counts = map[drop]int64{}
		}
		c.drops.counts[d] += n
	}
	c.drops.pending = nil
}

// reportDrops reports the counts of hours that have changed: at once for the first time, then from time to time, and
// when the hour is over or the mirror stops (all). Hours to which nothing more can be added are forgotten once they are
// reported.
func (c *copier) reportDrops(ctx context.Context, all bool) {
	now := time.Now()
	for _, d := range slices.SortedFunc(maps.Keys(c.drops.counts), func(a, b drop) int {
		return cmp.Or(cmp.Compare(a.hour, b.hour), cmp.Compare(a.rule, b.rule))
	}) {
		end, last, n := time.Unix(d.hour, 0).Add(time.Hour), c.drops.reported[d], c.drops.counts[d]
		if n != last.count && (all || !now.Before(end) || now.Sub(last.at) >= reportEvery) {
			err := c.put(ctx, c.dropEvent(d, n, now))
			if err != nil && !refused(err) {
				if ctx.Err() == nil {
					c.targetFailed(fmt.Errorf("report what rules dropped: %w", err))
				}
				return // the next save tries again
			}
			if err != nil {
				c.Log.WarnContext(ctx, "the target refuses the report of what a rule dropped, it is left out", "rule", d.rule, "error", err)
			}
			if c.drops.reported == nil {
				c.drops.reported = map[drop]report{}
			}
			last = report{n, now}
			c.drops.reported[d] = last
		}
		if n == last.count && !now.Before(end.Add(lateDrops)) {
			delete(c.drops.counts, d)
			delete(c.drops.reported, d)
		}
	}
}

// dropEvent returns the event that reports a drop: the same one for each report of the hour.
func (o ownEvents) dropEvent(d drop, n int64, now time.Time) *corev1.Event {
	from := time.Unix(d.hour, 0).UTC()
	to := from.Add(time.Hour)
	ev := o.event(fmt.Sprintf("%s.dropped.%x.%s", o.cursorName(), d.hour, d.rule), corev1.EventTypeNormal, event.DroppedReason)
	ev.Message = fmt.Sprintf("Between %s and %s, rule %s of the mirror dropped %d changes among %s of cluster %s.",
		stamp(from), stamp(to), d.rule, n, o.scope(), o.Cluster)
	last := to.Add(-time.Second)
	if now.Before(last) {
		last = now
	}
	ev.FirstTimestamp, ev.LastTimestamp = metav1.NewTime(from), metav1.NewTime(last)
	ev.Annotations = o.between(from, to)
	ev.Annotations[event.DroppedRule], ev.Annotations[event.DroppedCount] = d.rule, strconv.FormatInt(n, 10)
	return ev
}

// encodeDrops returns counts as an annotation has them.
func encodeDrops(counts map[drop]int64) string {
	text, _ := json.Marshal(counts) // texts and numbers: no error
	return string(text)
}

// tellRules records an event when the rules are others than before, also than before the start, until ctx ends.
func (m *Mirror) tellRules(ctx context.Context) {
	var wait client.Backoff
	shown := map[string]bool{}
	for ctx.Err() == nil {
		set := m.rules()
		m.metrics.showRules(set, shown)
		if err := m.tell(ctx, set); err != nil && !refused(err) {
			if ctx.Err() == nil && wait.Next(nil) > time.Second {
				m.Log.WarnContext(ctx, "the change of rules could not be recorded as an event; trying again", "error", err)
			}
			_ = wait.Wait(ctx, err)
			continue
		}
		wait.Reset()
		select {
		case <-ctx.Done():
		case <-m.RulesChanged:
		}
	}
}

// tell records rules, unless the event of the last change has them.
func (m *Mirror) tell(ctx context.Context, set *rules.Set) error {
	own, now := ownEvents{m, ""}, metav1.Now()
	ev := own.event(own.cursorName()+".rules", corev1.EventTypeNormal, rules.ChangedReason)
	ev.FirstTimestamp, ev.LastTimestamp, ev.Count = now, now, 1
	var before corev1.Event
	err := m.Target.Do(ctx, client.Request{Path: eventPath(ev.Namespace, ev.Name)}, &before)
	switch {
	case missing(err, "events"):
		if set.Hash() == "" {
			return nil
		}
	case err != nil:
		return err
	case before.Annotations[rules.HashAnnotation] == set.Hash():
		return nil
	default:
		ev.FirstTimestamp, ev.Count = before.FirstTimestamp, before.Count+1
	}
	ev.Annotations = map[string]string{rules.HashAnnotation: set.Hash()}
	ev.Message = fmt.Sprintf("The rules of the mirror of cluster %s have changed. Now there are: %s", m.Cluster, set.Summary())
	return own.put(ctx, ev)
}

// Tried says what rules would have done to the events that a cluster still has.
type Tried struct {
	Events int            // those that were last written since a time
	By     map[string]int // of them, those that the rule of this name decides about
}

// Try lists a cluster, and says what rules do to the events that were last written since a time. Namespaces are those
// of the cluster that are looked at; none: all.
func Try(ctx context.Context, source *client.Client, namespaces []string, cluster string, set *rules.Set, since time.Time) (t Tried, err error) {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	t.By = map[string]int{}
	for _, namespace := range namespaces {
		_, err := source.Pages(ctx, client.EventsPath("", namespace), nil, func(p *client.Page) error {
			for _, raw := range p.Items {
				var ev corev1.Event
				if json.Unmarshal(raw, &ev) != nil || lastWritten(&ev).Before(since) {
					continue
				}
				t.Events++
				facts := factsOf(&ev, cluster)
				if rule := set.Dropped(&facts); rule != nil {
					t.By[rule.Name]++
				} else if rule := set.Kept(&facts); rule != nil {
					t.By[rule.Name]++
				}
			}
			return nil
		}, func(err error) error { return err })
		if err != nil {
			return t, err
		}
	}
	return t, nil
}
