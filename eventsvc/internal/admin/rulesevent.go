package admin

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
)

// rulesKey is the key of the event that says which rules of what to keep are in force.
var rulesKey = store.Key{Namespace: metav1.NamespaceSystem, Name: "eventsvc.rules"}

// RulesRecorder records an event when the rules of what to keep are others than before, also than before the start.
type RulesRecorder struct {
	Rules   func() *rules.Set // in force
	Changed <-chan struct{}   // has a value when they are others
	Store   store.Store
	Codec   *codec.Codec
	Log     *slog.Logger
}

// Run records changes until ctx ends. It returns nil.
func (r *RulesRecorder) Run(ctx context.Context) error {
	var wait client.Backoff
	for ctx.Err() == nil {
		if err := r.record(ctx); err != nil {
			if ctx.Err() == nil {
				r.Log.WarnContext(ctx, "the change of rules could not be recorded as an event; trying again", "error", err)
			}
			_ = wait.Wait(ctx, err)
			continue
		}
		wait.Reset()
		select {
		case <-ctx.Done():
		case <-r.Changed:
		}
	}
	return nil
}

// record records the rules in force, unless the event of the last change has them.
func (r *RulesRecorder) record(ctx context.Context) error {
	_, err := r.Store.Update(ctx, rulesKey, store.Any, func(current *store.Record) (store.Decision, error) {
		in, now := r.Rules(), time.Now()
		ev := &eventsv1.Event{
			ObjectMeta:          metav1.ObjectMeta{Name: rulesKey.Name},
			EventTime:           metav1.NewMicroTime(now),
			ReportingController: "tidings.example/eventsvc", ReportingInstance: "eventsvc",
			Type: corev1.EventTypeNormal, Reason: rules.ChangedReason, Action: "Reload",
			Regarding: corev1.ObjectReference{Kind: "Rules", Name: "eventsvc", Namespace: rulesKey.Namespace},
		}
		switch {
		case current == nil && in.Hash() == "":
			return store.Decision{Op: store.Keep}, nil
		case current == nil:
			if err := event.PrepareForCreate(ev, rulesKey.Namespace, now); err != nil {
				return store.Decision{}, err
			}
		default:
			before, err := r.Codec.Event(current.View())
			if err != nil || before.Annotations[rules.HashAnnotation] == in.Hash() {
				return store.Decision{Op: store.Keep}, err
			}
			ev = before
			count := int32(2)
			if ev.Series != nil {
				count = ev.Series.Count + 1
			}
			ev.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(now)}
		}
		ev.Annotations = map[string]string{rules.HashAnnotation: in.Hash()}
		ev.Note = "The rules of what to keep have changed. Now there are: " + in.Summary()
		draft, err := r.Codec.Draft(ev)
		return store.Decision{Op: store.Put, Draft: draft}, err
	})
	return err
}
