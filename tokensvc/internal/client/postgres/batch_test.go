package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/tokensvc/internal/client/postgres"
)

// TestSharedQueries: look-ups for which no connection is free share the next query, never one that has begun.
func TestSharedQueries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		var asked []string
		find := postgres.Queries(1, func(ids []string) error {
			slices.Sort(ids)
			asked = append(asked, strings.Join(ids, " "))
			time.Sleep(time.Second)
			if slices.Contains(ids, "bad") {
				return broken
			}
			return nil
		})
		var wg sync.WaitGroup
		results := make([]string, 7)
		ask := func(i int, ctx context.Context, id string) {
			start := time.Now()
			wg.Go(func() { err := find(ctx, id); results[i] = fmt.Sprintf("%s: %v after %v", id, err, time.Since(start)) })
			synctest.Wait()
		}
		soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		ask(0, t.Context(), "a")
		ask(1, t.Context(), "a")
		ask(2, t.Context(), "b")
		ask(3, t.Context(), "b")
		ask(4, soon, "c")
		time.Sleep(1500 * time.Millisecond)
		ask(5, t.Context(), "bad")
		wg.Wait()
		ask(6, t.Context(), "a")
		wg.Wait()
		if diff := cmp.Diff([]string{"a", "a b c", "bad", "a"}, asked); diff != "" {
			t.Errorf("queries (-want +got):\n%s", diff)
		}
		want := []string{
			"a: <nil> after 1s", "a: <nil> after 2s", "b: <nil> after 2s", "b: <nil> after 2s",
			"c: context deadline exceeded after 500ms", "bad: broken after 1.5s", "a: <nil> after 1s",
		}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("look-ups (-want +got):\n%s", diff)
		}
	})
}

// TestSharedQueriesAreBounded: one query asks for at most 1024 ids, because PostgreSQL bounds its parameters. The
// look-ups beyond share the query after it.
func TestSharedQueriesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		find := postgres.Queries(1, func(ids []string) error {
			asked = append(asked, len(ids))
			time.Sleep(time.Second)
			return nil
		})
		var wg sync.WaitGroup
		for i := range 2500 {
			wg.Go(func() {
				if err := find(t.Context(), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
			if i == 0 {
				synctest.Wait() // the first has a connection
			}
		}
		wg.Wait()
		if diff := cmp.Diff([]int{1, 1024, 1024, 451}, asked); diff != "" {
			t.Errorf("ids of the queries (-want +got):\n%s", diff)
		}
	})
}
