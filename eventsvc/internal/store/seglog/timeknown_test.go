package seglog

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
)

// TestKnownSeries: a segment's series are known if all are sound and there is room, and are forgotten with it.
func TestKnownSeries(t *testing.T) {
	t.Parallel()
	var l Log
	learn := func(change func(b *bbolt.Bucket) error) *Segment {
		db, err := bbolt.Open(filepath.Join(t.TempDir(), "f"), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &Segment{db: db}
		err = db.Update(func(tx *bbolt.Tx) error {
			b, _, err := timeBuckets(tx)
			if err != nil {
				return err
			}
			n := seriesNumbersOf(tx)
			for _, namespace := range []string{"shop", "web"} {
				texts, _ := appendSeries(nil, []byte(namespace), event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, nil))
				if _, err := n.Number(b, string(texts)); err != nil {
					return err
				}
			}
			return change(b)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.View(func(tx *bbolt.Tx) error { l.learn(s, tx); return nil }); err != nil {
			t.Fatal(err)
		}
		return s
	}
	sound := learn(func(*bbolt.Bucket) error { return nil })
	if d, ok := sound.series(1); !ok || d.Value().Namespace != "web" || d.Value().Reason != "Pulled" || l.known.Load() != 2 {
		t.Errorf("%+v, %t, %d known", d.Value(), ok, l.known.Load())
	}
	if _, ok := sound.series(2); ok {
		t.Error("a series is known that is not there")
	}
	err := sound.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketSeries)).Put(seriesKey(2), seriesValue(seriesKey(2), nodeTexts("n1")))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sound.db.View(func(tx *bbolt.Tx) error { l.learn(sound, tx); return nil }); err != nil {
		t.Fatal(err)
	}
	if d, ok := sound.series(2); !ok || d.Value().Node != "n1" || l.known.Load() != 3 {
		t.Errorf("a series that was added is %+v, %t, %d known", d, ok, l.known.Load())
	}
	damaged := learn(func(b *bbolt.Bucket) error { return b.Put(seriesKey(1), []byte("damaged")) })
	gap := learn(func(b *bbolt.Bucket) error { return b.Delete(seriesKey(0)) })
	l.known.Store(maxKnownSeries - 1)
	full := learn(func(*bbolt.Bucket) error { return nil })
	for what, s := range map[string]*Segment{"damaged": damaged, "gap": gap, "full": full} {
		if _, ok := s.series(1); ok || !s.unknown.Load() {
			t.Errorf("%s: its series are known, or will be read again", what)
		}
		_ = s.close()
	}
	l.known.Store(3)
	if err := sound.close(); err != nil || l.known.Load() != 0 {
		t.Errorf("%d known at the end, %v", l.known.Load(), err)
	}
}
