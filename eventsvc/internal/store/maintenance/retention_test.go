package maintenance_test

import (
	"maps"
	"testing"

	"tidings.example/eventsvc/internal/store/maintenance"
)

func TestShadowed(t *testing.T) {
	t.Parallel()
	rule := func(namespace, kind string) maintenance.Rule {
		return maintenance.Rule{Namespace: namespace, Type: kind}
	}
	for name, test := range map[string]struct {
		rules []maintenance.Rule
		want  map[int]int
	}{
		"none":                    {nil, nil},
		"special ones first":      {[]maintenance.Rule{rule("dev", "Warning"), rule("dev", ""), rule("", "Warning"), rule("", "")}, nil},
		"overlapping":             {[]maintenance.Rule{rule("", "Warning"), rule("dev", "")}, nil},
		"twice":                   {[]maintenance.Rule{rule("dev", "Normal"), rule("dev", "Normal")}, map[int]int{1: 0}},
		"behind its namespace":    {[]maintenance.Rule{rule("dev", ""), rule("dev", "Normal"), rule("", "Normal")}, map[int]int{1: 0}},
		"behind its type":         {[]maintenance.Rule{rule("a", ""), rule("", "Normal"), rule("dev", "Normal")}, map[int]int{2: 1}},
		"behind all":              {[]maintenance.Rule{rule("", ""), rule("dev", ""), rule("", "Normal")}, map[int]int{1: 0, 2: 0}},
		"in other words the same": {[]maintenance.Rule{rule("a", "Normal"), rule("b", "Normal"), rule("a", "Warning")}, nil},
	} {
		if got := maintenance.Shadowed(test.rules); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
