package target

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
)

// History is what a busy cluster reports within a week, evenly spread: 50 namespaces, 52
// reasons of 8 kinds of object, 6 reporters, one Warning in ten.
type History struct {
	Events int       // how many
	End    time.Time // just behind the last one
}

// The week of a [History].
const historyWeek = 7 * 24 * time.Hour

// RareWord is in the notes of one event of ten thousand.
const RareWord = "zeppelin"

var (
	historyKinds     = []string{"Pod", "Deployment", "ReplicaSet", "Job", "CronJob", "Node", "PersistentVolumeClaim", "Service"}
	historyReporters = []string{"kubelet", "default-scheduler", "deployment-controller", "replicaset-controller", "job-controller", "cronjob-controller"}
)

// At returns the time at which event i was observed.
func (h *History) At(i int) time.Time {
	return h.End.Add(-historyWeek + time.Duration(float64(historyWeek)*float64(i)/float64(h.Events)))
}

// Namespace returns the namespace of event i.
func (h *History) Namespace(i int) string { return fmt.Sprintf("team-%02d", i*7919%50) }

// body returns event i.
func (h *History) body(i int) string {
	reason := i * 104729 % 52
	kind := "Normal"
	if reason%10 == 7 {
		kind = "Warning"
	}
	word := "started"
	if i%10_000 == 77 {
		word = RareWord
	}
	namespace := h.Namespace(i)
	return `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"` + EventName(i) + `","namespace":"` + namespace + `"},` +
		`"eventTime":"` + h.At(i).UTC().Format("2006-01-02T15:04:05.000000Z07:00") +
		`","reportingController":"` + historyReporters[reason%len(historyReporters)] + `","reportingInstance":"node-` + strconv.Itoa(i%100) +
		`","action":"Reporting","reason":"Reason` + strconv.Itoa(reason) + `","type":"` + kind +
		`","regarding":{"apiVersion":"v1","kind":"` + historyKinds[reason%len(historyKinds)] + `","namespace":"` + namespace + `","name":"object-` + strconv.Itoa(i%20_000) +
		`","uid":"6f1c2a34-9d0b-4c55-8a77-` + fmt.Sprintf("%012d", i%20_000) + `"},"note":"container ` + word + ` on attempt ` + strconv.Itoa(i%7) + `; ` + note + `"}`
}

// FillHistory creates the events of a history.
func (s *Services) FillHistory(ctx context.Context, h *History) error {
	for at := 0; at < h.Events; at += fillPart {
		token, err := s.FetchToken(ctx, 0)
		if err != nil {
			return fmt.Errorf("fill a week: %w", err)
		}
		var in [50]*Events // by namespace
		for i := range in {
			in[i] = NewEvents(s.EventsAddr.String(), token, h.Namespace(i))
		}
		spec := s.CreateSpec(in[0], 256)
		spec.Limit = min(fillPart, h.Events-at)
		spec.Next = func(dst []byte, i int) []byte {
			e := in[(at+i)%len(in)]
			return append(dst, e.Request("POST", e.Path(), "Content-Type: "+JSONType+"\r\n", h.body(at+i))...)
		}
		spec.Check = load.Status(201)
		if err := load.Do(spec, fillPatience); err != nil {
			return fmt.Errorf("fill a week: %w", err)
		}
	}
	return nil
}

// GetPath appends a GET of a path, as a client that wants JSON.
func (e *Events) GetPath(dst []byte, path string) []byte {
	return append(dst, e.Request("GET", path, "Accept: "+JSONType+"\r\n", "")...)
}
