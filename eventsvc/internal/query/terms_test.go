package query_test

import (
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// TestPatterns: * in a value of a field selector stands for any text, in counts of occurrences and of events. Event n
// has the reason Rn, and is about pn; the odd ones were observed twice.
func TestPatterns(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 12)
	for selector, want := range map[string][]string{
		"regarding.name=p1*":                         {"R1", "R10", "R11"},
		"regarding.name=p1*,regarding.name=*1":       {"R1", "R11"},
		"regarding.name!=p*1":                        {"R0", "R10", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9"},
		"metadata.name=e*1,metadata.name!=*11":       {"R1"},
		"metadata.namespace=s*p,reason=R1":           {"R1"},
		"reason=R1*":                                 {"R1", "R10", "R11"},
		"reason=*1,reason!=R1*":                      {},
		"reason!=R*":                                 {},
		"namespace=sh*,reason=*0":                    {"R0", "R10"},
		"namespace!=sh*":                             {},
		"cluster=*,reason=R3":                        {"R3"},
		"reason=*2,regarding.name=p*":                {"R2"},
		"reason=R2,regarding.name=p*":                {"R2"},
		"reason=R,regarding.name=p*":                 {},
		"reason in (R1, R2*,R7)":                     {"R1", "R2", "R7"},
		"reason notin (R1*,R2),namespace in (s*p,x)": {"R0", "R3", "R4", "R5", "R6", "R7", "R8", "R9"},
		"regarding.name notin (p1*,p2),reason!=R9":   {"R0", "R3", "R4", "R5", "R6", "R7", "R8"},
		"regarding.name=" + stars(16) + ",kind=":     {"R0", "R1", "R10", "R11", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9"},
	} {
		terms, err := query.ParseTerms(selector, "", "")
		if err != nil {
			t.Fatal(err)
		}
		q := everything(t, "")
		q.Terms = terms
		shot, err := querier.Snapshot(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var counted, found []string
		facets, _, err := shot.Facets(t.Context(), []query.Dimension{query.Reason}, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range facets[0].Values {
			counted = append(counted, v.Value)
		}
		_, err = shot.Events(t.Context(), query.Page{}, func(v *store.View, _ store.Moment) bool {
			found = append(found, string(v.Attributes.Field(event.Reason)))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(counted)
		slices.Sort(found)
		if !slices.Equal(counted, want) || !slices.Equal(found, want) {
			t.Errorf("%s: counted %v, found %v, want %v", selector, counted, found, want)
		}
	}
	for _, selector := range []string{"reason=" + stars(17), "regarding.name!=" + stars(17)} {
		if _, err := query.ParseTerms(selector, "", ""); err == nil || !strings.Contains(err.Error(), "has more than 16 *") {
			t.Errorf("%s: %v", selector, err)
		}
	}
	if _, err := query.ParseTerms("regarding.name in (a,b)", "", ""); err == nil || !strings.Contains(err.Error(), "regarding.name can have one value only") {
		t.Error(err)
	}
	for _, subject := range []query.Subject{{Kind: "Pod", Name: "web-*"}, {Kind: "*", Name: "web-0"}, {UID: "u*"}} {
		if err := subject.Check(); err == nil || !strings.Contains(err.Error(), "* is no pattern here") {
			t.Errorf("%+v: %v", subject, err)
		}
	}
}

func stars(n int) string { return strings.Repeat("*", n) }
