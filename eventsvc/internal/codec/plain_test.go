package codec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// Patches that only set values give what the libraries make of them.
func TestPlainPatchEqualsLibrary(t *testing.T) {
	t.Parallel()
	c := newCodec(t, "k8s.io")
	r := eventtest.NewRandom(17)
	plain := 0
	for range 1000 {
		for _, v := range allViews {
			for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
				stored := r.Plain()
				stored.Namespace, stored.UID = "n", "u"
				stored = live(t, c, stored)
				patch := []byte(r.MergePatch(v))
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
