package load

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/dump"
)

// TestImportGoesOn: events are stored while those before wait for the disk, unless one of them has the same name or
// nothing is known to be stored yet.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{begun: make(chan string, 9), end: map[string]chan admin.Imported{}}
		for _, name := range []string{"a", "c", "d", "e"} {
			s.end[name] = make(chan admin.Imported)
		}
		l := &loader{}
		begun := func(when string, want int) {
			t.Helper()
			if synctest.Wait(); len(s.begun) != want {
				t.Fatalf("%s: %d calls have begun, want %d", when, len(s.begun), want)
			}
		}
		store := func(names ...string) {
			var items []dump.Item
			for _, name := range names {
				items = append(items, dump.Item{Event: &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}})
			}
			go func() {
				if err := l.store(t.Context(), s, items); err != nil {
					t.Error(err)
				}
			}()
		}
		store("a", "b")
		begun("the first", 1)
		store("c")
		begun("nothing is stored yet", 1)
		s.end["a"] <- admin.Imported{Created: 2}
		begun("something is stored", 2)
		store("d")
		begun("beside another", 3)
		s.end["c"] <- admin.Imported{Problems: []admin.Problem{{Reason: "no room"}}}
		begun("no more", 3)
		store("e", "d")
		begun("of the same name", 3)
		s.end["d"] <- admin.Imported{Changed: 1}
		begun("of the same name, which has ended", 4)
		go func() { s.end["e"] <- admin.Imported{Deleted: 2} }()
		if err := l.settle(); err != nil || l.sum.Created != 2 || l.sum.Changed != 1 || l.sum.Deleted != 2 || l.sum.LeftOut != 1 || len(l.sum.Messages) != 1 {
			t.Errorf("%+v, %v", l.sum, err)
		}
	})
}

// slowStore is a store whose calls of Import end when they are told.
type slowStore struct {
	admin.Store
	begun chan string                    // the first name of each call
	end   map[string]chan admin.Imported // by that name
}

func (s *slowStore) Import(ctx context.Context, arrivals []admin.Arrival) (admin.Imported, error) {
	s.begun <- arrivals[0].Event.Name
	select {
	case sum := <-s.end[arrivals[0].Event.Name]:
		return sum, nil
	case <-ctx.Done():
		return admin.Imported{}, ctx.Err()
	}
}

// TestImportInterrupted: what is under way when an import is interrupted is stored, and counted.
func TestImportInterrupted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dump")
	if err := os.WriteFile(file, []byte(`{"kind":"Event","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","uid":"u"},"involvedObject":{"kind":"Pod","namespace":"shop","name":"web"},`+
		`"reason":"R","type":"Normal","count":1,"firstTimestamp":"2026-02-03T04:00:00Z","lastTimestamp":"2026-02-03T04:01:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		s := &slowStore{begun: make(chan string, 9), end: map[string]chan admin.Imported{"a": make(chan admin.Imported)}}
		ended := make(chan Result)
		go func() {
			sum, _ := Files(ctx, s, []string{file}, Options{Options: dump.Options{Labels: map[string]string{"a": "b"}}})
			ended <- sum
		}()
		<-s.begun
		interrupt()
		synctest.Wait()
		s.end["a"] <- admin.Imported{Created: 1}
		if sum := <-ended; sum.Created != 1 {
			t.Errorf("%+v", sum)
		}
	})
}
