package codec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
)

// patch makes merge patches of both views, most of which only set values.
func (r random) patch(v event.View) string {
	quoted := func() string {
		b, err := json.Marshal(r.text())
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	time := `"2026-05-04T12:00:00.000000Z"`
	note, ref, count := "note", "regarding", "deprecatedCount"
	if v == event.CoreV1 {
		note, ref, count = "message", "involvedObject", "count"
	}
	members := []string{
		`"` + note + `":` + quoted(), `"type":` + quoted(), `"reason":""`, fmt.Sprintf(`"%s":%d`, count, r.IntN(3)),
		fmt.Sprintf(`"series":{"count":%d,"lastObservedTime":%s}`, r.IntN(3), time), `"series":{"count":7}`, `"series":{}`,
		`"metadata":{"labels":{"b":` + quoted() + `,` + quoted() + `:"x"}}`, `"metadata":{"labels":{}}`,
		`"metadata":{"annotations":{"new":` + quoted() + `},"resourceVersion":"9"}`, `"metadata":{"name":"other"}`,
		`"` + ref + `":{"name":` + quoted() + `}`, `"related":{"kind":"Node"}`, `"eventTime":` + time,
		// What is not plain.
		`"series":null`, `"metadata":{"labels":{"b":null}}`, `"metadata":{"finalizers":["a/b"]}`, `"unknown":1`, `"type":1`,
	}
	var chosen []string
	for _, i := range r.Perm(len(members))[:1+r.IntN(3)] {
		chosen = append(chosen, members[i])
	}
	return "{" + strings.Join(chosen, ",") + "}"
}

// Patches that only set values give what the libraries make of them.
func TestPlainPatchEqualsLibrary(t *testing.T) {
	t.Parallel()
	c := newCodec(t, "k8s.io")
	r := newRandom(17)
	plain := 0
	for range 1000 {
		for _, v := range allViews {
			for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
				stored := r.plain()
				stored.Namespace, stored.UID = "n", "u"
				stored = live(t, c, stored)
				patch := []byte(r.patch(v))
				got, ok := codec.PatchPlain(c, v, kind, patch, stored)
				if !ok {
					continue
				}
				plain++
				want, warnings, err := codec.PatchFully(c, v, kind, patch, stored, "Strict")
				if err != nil || len(warnings) > 0 {
					t.Fatalf("%s: %q, %v", patch, warnings, err)
				}
				if diff := cmp.Diff(library(t, codec.Format{}, want), library(t, codec.Format{}, got)); diff != "" {
					t.Fatalf("%s, %s (-library +ours):\n%s", kind, patch, diff)
				}
			}
		}
	}
	if plain < 1000 {
		t.Errorf("only %d of 4000 patches were plain: the test does not tell", plain)
	}
}

// The same for what one manager changes.
func TestTrackPlainEqualsLibrary(t *testing.T) {
	t.Parallel()
	c := newCodec(t, "example.com")
	r := newRandom(19)
	plain := 0
	for range 600 {
		for _, v := range allViews {
			stored := r.plain()
			stored.UID = "u"
			if err := c.TrackUpdate(v, nil, stored, "controller"); err != nil {
				t.Fatal(err)
			}
			stored = live(t, c, stored)
			fast := change(t, r, c, v, stored)
			slow := fast.DeepCopy()
			if !codec.TrackPlain(c, v, stored, fast, "controller") {
				continue
			}
			plain++
			if err := codec.TrackFully(c, v, stored, slow, "controller"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(untimed(t, slow), untimed(t, fast)); diff != "" {
				t.Fatalf("(-library +ours):\n%s", diff)
			}
			if sameTime := fast.ManagedFields[0].Time.Equal(stored.ManagedFields[0].Time); sameTime != slow.ManagedFields[0].Time.Equal(stored.ManagedFields[0].Time) {
				t.Fatalf("the time stays: %v, which is not what the library does (-before +after):\n%s", sameTime, cmp.Diff(library(t, codec.Format{}, stored), library(t, codec.Format{}, slow)))
			}
		}
	}
	if plain < 300 {
		t.Errorf("only %d of 1200 changes were plain: the test does not tell", plain)
	}
}

// change is what a put or patch makes of a stored event.
func change(t *testing.T, r random, c *codec.Codec, v event.View, stored *eventsv1.Event) *eventsv1.Event {
	t.Helper()
	if r.IntN(8) == 0 {
		next := r.plain()
		next.Name, next.Namespace, next.UID = stored.Name, stored.Namespace, stored.UID
		return next
	}
	next, _, err := c.Patch(v, types.MergePatchType, []byte(r.patch(v)), stored, "")
	if err != nil {
		return stored.DeepCopy()
	}
	return next
}
