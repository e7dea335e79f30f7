package workload

import "testing"

func TestScatteredVisitsEveryEvent(t *testing.T) {
	t.Parallel()
	seen := make(map[int]bool)
	for i := range 10_000 {
		seen[scattered(i)] = true
	}
	if len(seen) != 10_000 || !seen[0] || !seen[9_999] {
		t.Errorf("%d of 10000 events visited", len(seen))
	}
}
