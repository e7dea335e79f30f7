package request_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// Patches that only set values give what the libraries make of them.
func TestPlainPatchEqualsLibrary(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	r := eventtest.NewRandom(17)
	plain := 0
	for range 1000 {
		for _, v := range codectest.Views {
			for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
				stored := r.Plain()
				stored.Namespace, stored.UID = "n", "u"
				stored = codectest.Live(t, c, stored)
				patch := []byte(r.MergePatch(v))
				got, ok := request.PatchPlain(c.Decoder, v, kind, patch, stored)
				if !ok {
					continue
				}
				plain++
				want, warnings, err := request.PatchFully(c.Decoder, v, kind, patch, stored, "Strict")
				if err != nil || len(warnings) > 0 {
					t.Fatalf("%s: %q, %v", patch, warnings, err)
				}
				if diff := cmp.Diff(codectest.Library(t, codec.Format{}, want), codectest.Library(t, codec.Format{}, got)); diff != "" {
					t.Fatalf("%s, %s (-library +ours):\n%s", kind, patch, diff)
				}
			}
		}
	}
	if plain < 1000 {
		t.Errorf("only %d of 4000 patches were plain: the test does not tell", plain)
	}
}
