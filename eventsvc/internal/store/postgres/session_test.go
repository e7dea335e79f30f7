package postgres_test

import (
	"bytes"
	"testing"
	"time"

	"tidings.example/shared/pgtest"
)

// TestSessions: replicas share the secret of the console's sessions and those that have ended, with the rights of a
// service; another database has another secret; what has ended long ago is forgotten.
func TestSessions(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	dsn := service(t, server.Database(t))
	a, b := open(t, options(dsn, t.TempDir())), open(t, options(dsn, t.TempDir()))
	other := open(t, options(service(t, server.Database(t)), t.TempDir()))
	first, err := a.Secret(t.Context())
	if err != nil || len(first) < 32 {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	if second, err := b.Secret(t.Context()); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the other replica has another secret, %v", err)
	}
	if third, err := other.Secret(t.Context()); err != nil || bytes.Equal(first, third) {
		t.Errorf("another database has the same secret, %v", err)
	}
	for id, until := range map[string]time.Time{"past": time.Now().Add(-time.Hour), "ended": time.Now().Add(time.Hour)} {
		if err := a.EndSession(t.Context(), id, until); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.EndSession(t.Context(), "ended", time.Now().Add(time.Hour)); err != nil {
		t.Errorf("again: %v", err)
	}
	for id, want := range map[string]bool{"past": false, "ended": true, "other": false} {
		if ended, err := b.SessionEnded(t.Context(), id); err != nil || ended != want {
			t.Errorf("%s: %t, %v", id, ended, err)
		}
	}
}
