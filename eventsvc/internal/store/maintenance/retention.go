package maintenance

import (
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
)

// rules returns the rules as they are now.
func (p *Policy) rules() *rules.Set {
	if p.Rules == nil {
		return nil
	}
	return p.Rules()
}

// retentionOf returns how long a version is kept by some rules.
func (p *Policy) retentionOf(e *seglog.Entry, by *rules.Set) time.Duration {
	if len(by.All()) == 0 {
		return p.Retention
	}
	facts := rules.FactsOf(e.Key[:e.NamespaceLen], event.Attributes(e.Attributes))
	if r := by.Kept(&facts); r != nil {
		return r.Keep
	}
	return p.Retention
}

// retentions returns the different times that events are kept by some rules, in order; 0: for ever.
func (p *Policy) retentions(by *rules.Set) []time.Duration {
	all := append(by.Durations(), p.Retention)
	if by.Forever() {
		all = append(all, 0)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// longest returns how long the events are kept that are kept longest, [usage.Forever] if
// some never go.
func (p *Policy) longest() time.Duration {
	all := p.retentions(p.rules())
	if slices.Contains(all, 0) {
		return usage.Forever
	}
	return all[len(all)-1]
}

// Kept returns the time before which nothing is kept of what was observed, unless it is
// reported by an event that exists. It is zero if something is kept for ever.
func (c *Config) Kept() time.Time {
	longest := c.Policy.longest()
	if longest == usage.Forever {
		return time.Time{}
	}
	return c.Clock.Old().Add(-longest)
}

const (
	// expiryBatch is how many events are deleted in one go.
	expiryBatch = 1024
	// expiryRound is how many events are deleted at most before the room of what is gone
	// is brought back.
	expiryRound = 64 * expiryBatch
	// deletionBytes is what a deletion takes of the files: its record, its place in the
	// index, the slack of pages.
	deletionBytes = 256
)

// expire deletes events whose last write is longer ago than they are kept, and
// reports whether there may be more. The log is in order of time, so for each
// retention there is a place in the log before which everything of that
// retention is gone. Other rules than before make it begin again.
func (m *Maintenance) expire(ctx context.Context) (more bool, err error) {
	// A quarter of the room, because the rest is needed to rewrite files.
	left := int(max(expiryBatch, min(expiryRound, m.Usage.DeletionRoom()/4/deletionBytes)))
	by := m.Policy.rules()
	if by != m.rules {
		clear(m.expired)
		m.rules = by
	}
	for _, retention := range m.Policy.retentions(by) {
		if retention == 0 {
			continue
		}
		cutoff := m.Clock.Old().Add(-retention)
		for rest := true; rest; {
			if left <= 0 {
				return true, nil
			}
			due, at, err := m.newestVersions(m.expired[retention],
				func(e *seglog.Entry) bool { return e.Time.Before(cutoff) },
				func(e *seglog.Entry) bool { return m.Policy.retentionOf(e, by) == retention })
			if err == nil {
				err = m.Delete(ctx, due)
			}
			if err != nil {
				return false, err
			}
			rest = at > m.expired[retention]
			m.expired[retention] = at
			left -= len(due)
		}
	}
	return false, nil
}

// expireOldest deletes the events that were not written for longest, until
// those that are left fit the limit of bytes.
func (m *Maintenance) expireOldest(ctx context.Context) error {
	for {
		excess := m.Usage.Excess()
		if excess <= 0 {
			return nil
		}
		oldest, at, err := m.newestVersions(m.oldest,
			func(*seglog.Entry) bool { return excess > 0 },
			func(e *seglog.Entry) bool { excess -= e.Size(); return true })
		if err == nil && at > m.oldest {
			err = m.Delete(ctx, oldest)
		}
		if err != nil || at == m.oldest {
			return err
		}
		m.oldest = at
	}
}

// newestVersions goes over the records behind a revision as long as goOn reports true, and
// returns the newest versions of events that take accepts, expiryBatch at most. It also
// returns the revision that it has come to.
func (m *Maintenance) newestVersions(after uint64, goOn, take func(*seglog.Entry) bool) (taken []store.Seen, at uint64, err error) {
	at = after
	err = m.Records.Scan(after, m.Records.Log.Published(), func(e *seglog.Entry, p index.Pointer) bool {
		if !goOn(e) {
			return false
		}
		if p == index.NewPointer(e.Revision, false) && take(e) {
			taken = append(taken, e.Seen())
		}
		at = e.Revision
		return len(taken) < expiryBatch
	})
	if err != nil {
		err = m.ReadError(err)
	}
	return taken, at, err
}
