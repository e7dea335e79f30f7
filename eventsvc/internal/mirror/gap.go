package mirror

import (
	"context"
	"fmt"
	"time"
)

// gap is a time in which events of the source may be missing: from the last time at which the cursor was complete until
// the source was listed. What the source had deleted by then, mostly because of its age, was never seen. What it still
// had is copied.
type gap struct {
	cursor cursor    // the last one before the gap
	to     time.Time // when the first page of the list came
	oldest time.Time // of the events that the list shows: when it was last written; zero: there were none
}

// list takes the events of the list into account.
func (g *gap) list(items []item) {
	for _, it := range items {
		if at := it.written; g.oldest.IsZero() || at.Before(g.oldest) {
			g.oldest = at
		}
	}
}

// The times in which a cluster deletes no event because of its age.
const (
	keptFor  = 5 * time.Minute // from its last write, in any cluster
	ageSlack = time.Minute     // for which events of different age may be deleted together
)

// closed reports whether the list has closed the gap: it was short, or the source still has an event from before it, so
// that none was deleted because of its age.
func (g *gap) closed() bool {
	from := g.cursor.complete
	return g.to.Sub(from) < keptFor || !g.oldest.IsZero() && g.oldest.Before(from.Add(-ageSlack))
}

// note says in a sentence what a reader of the history has to know.
func (g *gap) note(own ownEvents, reason string) string {
	why := map[string]string{
		reasonFirst:   "the position of the mirror was lost",
		reasonGone:    "the cluster no longer kept the changes since then",
		reasonRewound: "the versions of the cluster started over",
		reasonSilent:  "its watch said nothing",
	}[reason]
	rest := "When it was listed at the end, it had no events."
	if !g.oldest.IsZero() {
		rest = fmt.Sprintf("Those that it still had at the end were copied, the oldest last written %s.", stamp(g.oldest))
	}
	return fmt.Sprintf("Between %s and %s the mirror did not see %s of cluster %s, because %s. %s",
		stamp(g.cursor.complete), stamp(g.end()), own.scope(), own.Cluster, why, rest)
}

// end returns the end of the gap in whole seconds, rounded up, as its begin is rounded down.
func (g *gap) end() time.Time { return g.to.Add(time.Second - 1).Truncate(time.Second) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// report stores an event for the gap before a list, and counts it. Before the first list of a new mirror there is no
// gap, only the beginning. What the list has closed is none either, if the source is the same as before.
func (c *copier) report(ctx context.Context, g gap, reason string) error {
	if g.cursor.complete.IsZero() || g.closed() && (reason == reasonGone || reason == reasonSilent) {
		return nil
	}
	ev := c.gap(g, reason)
	c.metrics.gaps.WithLabelValues(c.name).Inc()
	c.Log.WarnContext(ctx, "events may be missing", "namespace", c.name, "from", stamp(g.cursor.complete), "to", stamp(g.end()),
		"reason", reason)
	err := c.insist(ctx, func() error { return c.put(ctx, ev) })
	if refused(err) {
		c.Log.WarnContext(ctx, "the target refuses the report of a gap, it is left out", "name", ev.Name, "error", err)
		return nil
	}
	return err
}
