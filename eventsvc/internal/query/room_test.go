package query_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// many is a timeline with so many groups, of which each is observed a second later than the one before.
type many struct {
	store.Timeline
	groups int
	text   string // of each reason
}

// often is how often a group is observed.
func often(group int) int64 { return 1 + int64(group*7919%1000) }

func (m many) Count(_ context.Context, r store.Count, visit func(store.Occurred)) error {
	seconds := r.To.Unix() - r.From.Unix()
	for i := range m.groups {
		id := r.Group(event.Dimensions{Reason: fmt.Sprint(m.text, i), Namespace: "shop", Reporter: fmt.Sprint("r", i%7)}, event.Regarding{})
		visit(store.Occurred{Group: id, Second: r.From.Unix() + int64(i)%seconds, Count: often(i)})
	}
	return nil
}

func (m many) Survey(ctx context.Context, s store.Survey) (store.TimePage, error) {
	for _, c := range s.Counts {
		c.Range = s.Range
		if err := m.Count(ctx, c.Count, c.Visit); err != nil {
			return store.TimePage{}, err
		}
	}
	return store.TimePage{}, nil
}

// TestHistogramBeyondCells: a histogram whose cells are too many for all groups is exact for those that it shows, and
// says nothing else. It has each bucket and the total.
func TestHistogramBeyondCells(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 1)
	querier.Timeline = many{Timeline: querier.Timeline, groups: 2000}
	querier.Now = func() time.Time { return noon.Add(3 * time.Hour) }
	in := everything(t, "")
	in.To = noon.Add(3 * time.Hour)
	shot, err := querier.Snapshot(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	h, err := shot.Histogram(t.Context(), []query.Dimension{query.Reason, query.Reporter}, time.Second)
	if err != nil || len(shot.Partial) > 0 || len(h.Values) != query.MaxValues || len(h.Buckets) != 2000 {
		t.Fatalf("%d values, %d buckets, %q: %v", len(h.Values), len(h.Buckets), shot.Partial, err)
	}
	total := int64(0)
	least := often(0)
	for i := range 2000 {
		total += often(i)
	}
	sums := make([]int64, len(h.Values))
	for i, b := range h.Buckets {
		shown := b.Other
		for j, n := range b.Counts {
			shown += n
			sums[j] += n
		}
		if b.Count != often(i) || shown != b.Count {
			t.Fatalf("bucket %d has %d, of which %d are shown or others; want %d", i, b.Count, shown, often(i))
		}
	}
	for j, value := range h.Values {
		var group int
		if _, err := fmt.Sscan(value[0], &group); err != nil || sums[j] != often(group) || value[1] != fmt.Sprint("r", group%7) {
			t.Errorf("%q is counted %d times, want %d: %v", value, sums[j], often(group), err)
		}
		if least = often(group); j > 0 && sums[j] > sums[j-1] {
			t.Errorf("%q is more frequent than the one before", value)
		}
	}
	for i := range 2000 {
		if often(i) > least && !strings.Contains(fmt.Sprint(h.Values), fmt.Sprintf("[%d r", i)) {
			t.Errorf("%d is not shown, and more frequent than one that is", i)
		}
	}
	if h.Total != total {
		t.Errorf("%d in all, want %d", h.Total, total)
	}
}

// TestQuestionsTakeRoom: what a question keeps in memory takes its room before. Without room it ends with the error of
// the room.
func TestQuestionsTakeRoom(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 1)
	querier.Timeline = many{querier.Timeline, 20_000, strings.Repeat("x", 600)}
	querier.Now = func() time.Time { return noon.Add(3 * time.Hour) }
	by := []query.Dimension{query.Reason}
	for name, ask := range map[string]func(context.Context, *query.Snapshot) error{
		"histogram": func(ctx context.Context, s *query.Snapshot) error {
			_, err := s.Histogram(ctx, by, time.Second)
			return err
		},
		"facets": func(ctx context.Context, s *query.Snapshot) error {
			_, _, err := s.Facets(ctx, by, 10)
			return err
		},
		"groups": func(ctx context.Context, s *query.Snapshot) error {
			_, _, err := s.Groups(ctx, by, query.GroupPage{Order: query.ByCount, Limit: 10, Bytes: 1 << 20})
			return err
		},
		"overview": func(ctx context.Context, s *query.Snapshot) error {
			_, err := s.Overview(ctx, query.OverviewQuery{By: by, Values: 10, Over: []query.Dimension{query.Reporter}, Most: 20})
			return err
		},
	} {
		scheduler := flow.New(10, 10, 2)
		seat := func() *flow.Seat {
			s, err := scheduler.Enter(flow.Reads, "a")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Release)
			return s
		}
		mine, other := seat(), seat()
		ctx := context.WithValue(t.Context(), flow.Key{}, mine)
		in := everything(t, "")
		in.To = noon.Add(3 * time.Hour)
		try := func() error {
			if err := mine.Room().Set(flow.Question); err != nil {
				t.Fatal(err)
			}
			shot, err := querier.Snapshot(ctx, in)
			if err != nil {
				t.Fatal(err)
			}
			return ask(ctx, shot)
		}
		if err := try(); err != nil || mine.Room().Bytes() < 12<<20 || mine.Room().Bytes() > flow.LargestQuestion {
			t.Errorf("%s takes %d KiB: %v", name, mine.Room().Bytes()>>10, err)
		}
		mine.Room().Free()
		if err := other.Room().Try(flow.LargestQuestion - flow.Question); err != nil {
			t.Fatal(err)
		}
		if err := try(); !errors.Is(err, flow.ErrUnreadOfFlow) {
			t.Errorf("%s without room: %v", name, err)
		}
	}
}
