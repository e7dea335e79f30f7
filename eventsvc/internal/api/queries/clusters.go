package queries

import (
	"context"
	"strconv"
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
		row := clusterRow{Name: c.Cluster, CompleteUntil: stamp(c.Complete), Lag: int64(r.Mirrored.since(c)), Gaps: gaps[c.Cluster], Mirror: c.Mirror}
		if !c.Last.IsZero() {
			row.LastEvent = stamp(c.Last)
		}
		out.Items[i] = row
	}
	columns := []string{"name", "completeUntil", "lag", "lastEvent", "gaps", "mirror"}
	return &answer{json: out, columns: columns, rows: func(line func([]string) error) error {
		for _, row := range out.Items {
			if err := line([]string{row.Name, row.CompleteUntil, strconv.FormatInt(row.Lag, 10), row.LastEvent, strconv.Itoa(row.Gaps), row.Mirror}); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}
