package bolt

import (
	"fmt"
	"slices"
	"testing"

	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// TestPlan: the counts alone decide how a list is read.
func TestPlan(t *testing.T) {
	t.Parallel()
	const all, namespace = 3_000_000, 15_000
	for name, tt := range map[string]struct {
		estimate
		want plan
	}{
		"nothing was found":                {estimate{all, 500, 0, 0, 0}, sortFound},
		"an object":                        {estimate{all, 0, 20, 0, 0}, sortFound},
		"a label of 1 in 500":              {estimate{all, 0, 6_000, 0, 0}, sortFound},
		"a page of a label of 1 in 500":    {estimate{all, 500, 6_000, 0, 0}, walkFound},
		"a reason of 1 in 52":              {estimate{all, 0, 57_000, 0, 0}, walkFound},
		"all warnings":                     {estimate{all, 0, 300_000, 0, 0}, walkFound},
		"a page of the warnings":           {estimate{all, 500, 300_000, 0, 0}, walkFound},
		"an object of a namespace":         {estimate{namespace, 0, 20, 0, 0}, sortFound},
		"a reason of a namespace":          {estimate{namespace, 0, 1_000, 0, 0}, walkFound},
		"the first of an object":           {estimate{all, 1, 20, 0, 0}, sortFound},
		"chunks of an object":              {estimate{all, 0, 0, 6_000, 0}, sortFound},
		"chunks of all warnings":           {estimate{all, 0, 300_000, 6_000, 0}, walkFound},
		"chunks of a page of the warnings": {estimate{all, 500, 300_000, 6_000, 0}, walkKeys},
		"chunks of a page of 1 in 100":     {estimate{all, 500, 30_000, 6_000, 0}, walkFound},
		"chunks of a page of all":          {estimate{all, 500, all, 6_000, 0}, walkKeys},
		"chunks of all of a namespace":     {estimate{namespace, 0, namespace, 6_000, 0}, walkFound},
		"chunks of a small namespace":      {estimate{2_000, 0, 1_000, 6_000, 0}, walkKeys},
		"the same in compressed files":     {estimate{2_000, 0, 1_000, 6_000, 1}, walkFound},
	} {
		if got := tt.plan(); got != tt.want {
			t.Errorf("%s: plan %d, want %d", name, got, tt.want)
		}
	}
}

// TestPassedKeys: a batch passes over the keys that the index alone shows not to match, and
// ends behind the last key that it may pass over.
func TestPassedKeys(t *testing.T) {
	t.Parallel()
	x, err := index.Open(t.TempDir(), func() []byte { return []byte("id") })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range uint64(100) {
		x.Put(fmt.Sprintf("ns%d/%02d", i%2, i/2), index.NewPointer(i+1, false))
	}
	odd := index.Revisions{}
	for r := uint64(21); r <= 100; r += 20 { // of ns0
		odd.Add(r)
	}
	for name, tt := range map[string]struct {
		keyBatch
		want []string
		last string // that was passed over, unless all keys were
	}{
		"all":                       {keyBatch{revision: 100, room: 100, suffix: []byte("/07")}, []string{"ns0/07", "ns1/07"}, ""},
		"wanted":                    {keyBatch{revision: 100, room: 100, wanted: odd}, []string{"ns0/10", "ns0/20", "ns0/30", "ns0/40"}, ""},
		"newer ones are followed":   {keyBatch{revision: 97, room: 100, wanted: odd}, []string{"ns0/10", "ns0/20", "ns0/30", "ns0/40", "ns0/49", "ns1/48", "ns1/49"}, ""},
		"no room":                   {keyBatch{revision: 100, room: 0, wanted: odd}, nil, ""},
		"room up to a wanted key":   {keyBatch{revision: 100, room: 10, wanted: odd}, []string{"ns0/10"}, "ns0/10"},
		"room up to one not wanted": {keyBatch{revision: 100, room: 15, wanted: odd}, []string{"ns0/10"}, "ns0/15"},
	} {
		err := x.View(func(v index.View) error {
			b, all := &tt.keyBatch, tt.last == "" && tt.room > 0
			b.source, b.log, b.size = v.Iterate("", ""), new(seglog.Reader), 3
			var got []string
			for ; b.valid(); b.next() {
				got = append(got, string(b.current().key))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: keys %v, want %v", name, got, tt.want)
			}
			if b.ended() != all || !all && string(b.last) != tt.last {
				t.Errorf("%s: ended %t at %q, want the end at %q", name, b.ended(), b.last, tt.last)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
