package ctl

import (
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLastSeen: a time that no reporter can have seen is replaced by that of the creation.
func TestLastSeen(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct{ at, want time.Time }{
		{created.Add(-time.Hour), created.Add(-time.Hour)},
		{time.Unix(0, 0), time.Unix(0, 0)},
		{time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), created},
		{time.Now().AddDate(0, 0, 2), created},
	} {
		ev := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}, EventTime: metav1.NewMicroTime(test.at)}
		if got := lastSeen(ev); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", test.at, got, test.want)
		}
	}
}
