package changes

import (
	"cmp"
	"context"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// maxRollouts is how many events of rollouts are read.
const maxRollouts = 500

// rollouts adds rows for Deployments that scaled a ReplicaSet up just before its Pods had a problem, as far as no row
// has that change yet. Only the note of the event names the ReplicaSet.
func (c *comparison) rollouts(ctx context.Context, rows []*candidate) ([]*candidate, error) {
	failing := map[[2]string][]*candidate{} // by cluster and namespace
	for _, r := range rows {
		if r.scalable() {
			for _, s := range r.tallies {
				in := [2]string{s.cluster, s.namespace}
				failing[in] = append(failing[in], r)
			}
		}
	}
	if len(failing) == 0 {
		return rows, nil
	}
	q := store.TimeQuery{Range: c.answer.Range, Wanted: func(d event.Dimensions) bool {
		return d.Kind == "Deployment" && d.Reason == "ScalingReplicaSet" && failing[[2]string{d.Cluster, d.Namespace}] != nil
	}}
	q.From = q.From.Add(-causeTime)
	warnings := c.warned.counts()
	best := map[*candidate]*candidate{} // the last rollout before each row
	var err error
	readErr := c.observed(ctx, q, maxRollouts, func(v *store.View, at store.Moment) bool {
		var note []byte
		if note, err = c.q.Note(v); err != nil {
			return false
		}
		e := editOf(v, at.Time)
		for _, r := range failing[[2]string{e.cluster, e.namespace}] {
			for _, e.at = range []int64{at.Time.Unix(), e.at} { // the last time and the first one
				if best[r] == nil && e.before(r) && c.scaled(e, note, r, warnings) {
					best[r] = e.row(r, r.score, 1)
				}
			}
		}
		return true
	})
	return withRollouts(rows, best), cmp.Or(err, readErr)
}

// scalable reports whether a row is about a problem that a rollout may have made.
func (r *candidate) scalable() bool {
	return r.alarming() && (r.kind == "Pod" || r.kind == "ReplicaSet") && r.way != Less && r.way != Changed
}

// before reports whether a change came just before a row.
func (e *edit) before(r *candidate) bool {
	before := r.onset - e.at
	return -onsetTolerance <= before && before <= int64(causeTime/time.Second)
}

// withRollouts puts behind each row the rollout that it follows, unless a row before it has that.
func withRollouts(rows []*candidate, of map[*candidate]*candidate) []*candidate {
	id := func(r *candidate) subject {
		return subject{tallyKey{cluster: r.cluster, namespace: r.namespace, kind: r.kind}, cmp.Or(r.exact, r.named)}
	}
	known := map[subject]*candidate{}
	for _, r := range rows {
		if r.way == Changed || r.kind == "Deployment" && r.reason == "ScalingReplicaSet" {
			known[id(r)] = r
		}
	}
	with := make([]*candidate, 0, len(rows)+len(of))
	for _, r := range rows {
		with = append(with, r)
		rollout := of[r]
		if rollout == nil {
			continue
		}
		if r.follows = known[id(rollout)]; r.follows == nil {
			known[id(rollout)], r.follows = rollout, rollout
			with = append(with, rollout)
		}
	}
	return with
}

// scaled reports whether a rollout made most of the objects of a row, as its note names their ReplicaSet.
func (c *comparison) scaled(e *edit, note []byte, r *candidate, warnings map[tallyKey]int64) bool {
	set, ok := strings.CutPrefix(string(note), "Scaled up replica set ")
	if set, _, _ = strings.Cut(set, " "); !ok || set == "" {
		return false
	}
	var of, all int64
	for _, s := range r.tallies {
		if all += warnings[s.tallyKey]; s.namespace == e.namespace {
			of += c.warned.subjects[subject{s.tallyKey, "ReplicaSet/" + set}]
		}
	}
	return of > 0 && 2*of >= all
}

// counts returns how often the warnings came that were read.
func (w *warned) counts() map[tallyKey]int64 {
	counts := map[tallyKey]int64{}
	for k, n := range w.subjects {
		if strings.HasPrefix(k.object, k.kind+"/") {
			counts[k.tallyKey] += n
		}
	}
	return counts
}
