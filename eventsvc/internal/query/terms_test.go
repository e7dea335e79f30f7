package query_test

import (
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// TestSelectors: a field selector and a search count the occurrences that they find the events of. Event n has the
// reason Rn, and is about pn; the odd ones were observed twice. In a search, * stands for any text.
func TestSelectors(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 12)
	for _, c := range []struct {
		selector, search string
		want             []string
	}{
		{"", "name:p1*", []string{"R1", "R10", "R11"}},
		{"", "name:p1* name:*1", []string{"R1", "R11"}},
		{"", "name!=p*1", []string{"R0", "R10", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9"}},
		{"metadata.namespace=shop,reason=R1", "", []string{"R1"}},
		{"", "reason:R1*", []string{"R1", "R10", "R11"}},
		{"", "reason:*1 reason!=R1*", nil},
		{"", "-reason:R*", nil},
		{"", "ns:sh* reason:*0", []string{"R0", "R10"}},
		{"cluster=,reason=R3", "", []string{"R3"}},
		{"regarding.name=p2", "reason:*2", []string{"R2"}},
		{"reason=R2", "name:p*", []string{"R2"}},
		{"reason=R", "name:p*", nil},
		{"", "reason:R1,R2*,R7", []string{"R1", "R2", "R7"}},
		{"reason!=R9", "-name:p1*,p2", []string{"R0", "R3", "R4", "R5", "R6", "R7", "R8"}},
	} {
		terms, err := query.ParseTerms(c.selector, "", c.search)
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
		if !slices.Equal(counted, c.want) || !slices.Equal(found, c.want) {
			t.Errorf("%s %s: counted %v, found %v, want %v", c.selector, c.search, counted, found, c.want)
		}
	}
	for _, selector := range []string{"reason=R*", "regarding.name!=*"} {
		if _, err := query.ParseTerms(selector, "", ""); err == nil || !strings.Contains(err.Error(), "* is no pattern here") {
			t.Errorf("%s: %v", selector, err)
		}
	}
	for _, subject := range []query.Subject{{Kind: "Pod", Name: "web-*"}, {Kind: "*", Name: "web-0"}, {UID: "u*"}} {
		if err := subject.Check(); err == nil || !strings.Contains(err.Error(), "* is no pattern here") {
			t.Errorf("%+v: %v", subject, err)
		}
	}
}
