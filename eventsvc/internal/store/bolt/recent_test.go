package bolt

import "testing"

func TestRecent(t *testing.T) {
	t.Parallel()
	r := newRecent[string, int](2)
	for i, key := range []string{"a", "b", "a", "c"} {
		r.put(key, i)
	}
	for key, want := range map[string]int{"b": 1, "c": 3} {
		if got, ok := r.get(key); !ok || got != want {
			t.Errorf("%s is %d (%v), want %d", key, got, ok, want)
		}
	}
	if _, ok := r.get("a"); ok {
		t.Error("the oldest of three is remembered, but two are kept")
	}
}
