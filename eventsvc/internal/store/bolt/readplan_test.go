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
		"a value that no event has":        {estimate{all, all, 500, 0}, sortPostings},
		"an object":                        {estimate{all, all, 0, 20}, sortPostings},
		"a label of 1 in 500":              {estimate{all, all, 0, 6_000}, sortPostings},
		"a page of a label of 1 in 500":    {estimate{all, all, 500, 6_000}, walkPostings},
		"a reason of 1 in 52":              {estimate{all, all, 0, 57_000}, walkPostings},
		"a page of a reason of 1 in 52":    {estimate{all, all, 500, 57_000}, walkPostings},
		"a label of 1 in 100 of a million": {estimate{1_000_000, 1_000_000, 0, 10_000}, sortPostings},
		"all warnings":                     {estimate{all, all, 0, 300_000}, walkPostings},
		"a page of the warnings":           {estimate{all, all, 500, 300_000}, walkPostings},
		"the warnings of a namespace":      {estimate{all, namespace, 0, 300_000}, walkPostings},
		"an object of a namespace":         {estimate{all, namespace, 0, 20}, sortPostings},
		"a reason in a namespace of few":   {estimate{all, 10, 0, 57_000}, walkKeys},
		"the normal ones":                  {estimate{all, all, 0, 2_700_000}, walkKeys},
		"the normal ones of a namespace":   {estimate{all, namespace, 0, 2_700_000}, walkKeys},
		"a page of what all events have":   {estimate{all, all, 500, all}, walkKeys},
		"more versions than events":        {estimate{1000, 1000, 10, 90_000}, walkKeys},
		"the first of an object":           {estimate{all, all, 1, 20}, sortPostings},
		"nothing is stored":                {estimate{0, 0, 0, 0}, sortPostings},
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
		x.Put(fmt.Sprintf("ns%d/%02d", i%2, i/2), index.NewPointer(i+1, false), nil)
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
