package queries

import (
	"slices"

	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
)

// The parameters that say what a question is about.
var about = []string{"from", "to", "namespace", "fieldSelector", "labelSelector", "search", "revision", "formulas"}

func with(more ...string) []string { return append(slices.Clip(about), more...) }

// endpoints are all paths below [Path].
var endpoints = []*endpoint{
	{
		name: "events", summary: "Events, newest observation first.", parameters: with("order", "limit", "continue"),
		limit: 100, maxLimit: 1000, orders: []query.Order{query.Newest, query.Oldest}, answer: answerEvents,
	},
	{
		name: "histogram", summary: "How often something was observed, over time.", parameters: with("by", "step"),
		by: query.Counted, mostBy: query.MaxBy, answer: answerHistogram,
	},
	{
		name: "facets", summary: "How often each value of a dimension was observed.", parameters: with("by", "limit"),
		by: query.Counted, limit: query.DefaultFacetValues, maxLimit: query.MaxFacetValues, answer: answerFacets,
	},
	{
		name: "overview", summary: "The first events, how often each value of a dimension was observed, and how often over time, read together.",
		parameters: append([]string{"from", "to", "namespace", "fieldSelector", "labelSelector", "search", "revision", "order", "limit"}, ofCounts...),
		by:         query.Counted, limit: 100, maxLimit: 1000, orders: []query.Order{query.Newest, query.Oldest}, lined: true, answer: answerOverview,
	},
	{
		name: "groups", summary: "How often, since when and until when something was observed, by dimensions.", parameters: with("by", "order", "limit", "continue"), required: "by",
		by: query.Grouped, limit: 100, maxLimit: 1000, orders: []query.Order{query.ByCount, query.Newest, query.Oldest}, answer: answerGroups,
	},
	{
		name: "object", summary: "Everything that happened to one object.",
		parameters: []string{"uid", "kind", "name", "namespace", "cluster", "from", "to", "order", "limit", "continue", "revision", "formulas"},
		limit:      100, maxLimit: 1000, allHistory: true, orders: []query.Order{query.Oldest, query.Newest}, answer: answerObject,
	},
	{
		name: "deleted", summary: "Which events somebody has deleted, and who; not what has expired.",
		parameters: []string{"from", "to", "namespace", "fieldSelector", "labelSelector", "limit", "continue", "revision", "formulas"},
		limit:      100, maxLimit: 1000, answer: answerDeleted,
	},
	{
		name: "clusters", summary: "Which clusters are mirrored to here, until when each is complete, and its gaps in the range.",
		parameters: []string{"namespace", "from", "to", "formulas"}, allHistory: true, ofNow: true, answer: answerClusters,
	},
	{
		name: "changes", summary: "What changed before an instant, most unexpected first.",
		parameters: []string{"at", "window", "namespace", "search", "cluster", "uid", "kind", "name", "limit", "revision", "formulas"},
		limit:      changes.DefaultRows, maxLimit: changes.MaxRows, instant: true, answer: answerChanges,
	},
}
