package queries

import (
	"context"
	"strconv"
	"time"
)

type clustersAnswer struct {
	head
	Items []clusterRow `json:"items"`
}

// clusterRow says how far a cluster is copied.
type clusterRow struct {
	Name          string `json:"name"`
	CompleteUntil string `json:"completeUntil"`
	Lag           int64  `json:"lag"`                 // seconds since then
	Every         int64  `json:"every,omitempty"`     // the usual seconds between two moves of its cursor; 0: not known
	Late          bool   `json:"late"`                // by that
	LastEvent     string `json:"lastEvent,omitempty"` // when the newest event was last written
	Gaps          int    `json:"gaps"`                // in the range
	Mirror        string `json:"mirror,omitempty"`    // version of the program
}

// answerClusters tells which clusters are mirrored to here, and until when each is complete.
func answerClusters(_ context.Context, r *request) (*answer, error) {
	clusters, more := r.Mirrored.clusters(r.readable.Allows)
	if more {
		r.shot.Partly("only the first %d clusters by name are listed, there are more", maxClusters)
	}
	gaps := map[string]int{}
	for _, g := range r.shot.Gaps {
		gaps[g.Cluster]++
	}
	out := clustersAnswer{head: r.head(), Items: make([]clusterRow, len(clusters))}
	for i, c := range clusters {
		row := clusterRow{Name: c.Cluster, CompleteUntil: stamp(c.Complete), Lag: int64(r.Mirrored.since(c)), Every: int64(c.every / time.Second), Late: c.late, Gaps: gaps[c.Cluster], Mirror: c.Mirror}
		if !c.Last.IsZero() {
			row.LastEvent = stamp(c.Last)
		}
		out.Items[i] = row
	}
	columns := []string{"name", "completeUntil", "lag", "every", "late", "lastEvent", "gaps", "mirror"}
	return &answer{json: out, columns: columns, rows: func(line func([]string) error) error {
		for _, row := range out.Items {
			if err := line([]string{row.Name, row.CompleteUntil, strconv.FormatInt(row.Lag, 10), strconv.FormatInt(row.Every, 10), strconv.FormatBool(row.Late), row.LastEvent, strconv.Itoa(row.Gaps), row.Mirror}); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// Late is a mirror that is late: what happened since may be missing.
type Late struct {
	Cluster string
	Since   time.Time
}

// late returns the mirrors that are late and of which an answer may lack something.
func (r *request) late() (all []Late) {
	clusters, _ := r.Mirrored.clusters(r.readable.Allows)
	for _, c := range clusters {
		if c.late && c.Complete.Before(r.shot.To) {
			all = append(all, Late{c.Cluster, c.Complete})
		}
	}
	return all
}
