package ctl

import (
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/shared/cli"
)

// TestLastSeen: a time that no reporter can have seen is replaced by the time of creation.
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

// TestNoPatterns: where * is no pattern, it is a mistake, because the answer would be empty for no visible reason.
func TestNoPatterns(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]filters{
		"namespace": {Namespace: "team-*"}, "type": {Type: "*"}, "reason": {Reason: "Back*"}, "regarding": {Regarding: "Pod/web-*"},
		"reporting-controller": {ReportingController: "*let"}, "field-selector": {FieldSelector: "regarding.name=web-*"},
	} {
		if err := f.check(); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "--"+name+" ") || !strings.Contains(err.Error(), "* is no pattern here") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parseAwaited("reason=Back*"); err == nil || !strings.Contains(err.Error(), "reason=Back*: * is no pattern here") {
		t.Errorf("--wait-for: %v", err)
	}
	if err := (&filters{Regarding: "Pod/web-0", Terms: []string{"name:web-*"}}).check(); err != nil {
		t.Errorf("a term may have one: %v", err)
	}
}
