package logql

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Series has a value for each point in time at which it has one.
type Series struct {
	Labels []Label // sorted by name
	Values []float64
	Has    []bool // whether the value of a point is there
}

// NewSeries returns a series without values at n points.
func NewSeries(labels []Label, n int) *Series {
	return &Series{Labels: labels, Values: make([]float64, n), Has: make([]bool, n)}
}

func (s *Series) set(i int, v float64) { s.Values[i], s.Has[i] = v, true }

// Key tells series apart: their labels.
func Key(labels []Label) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.Name)
		b.WriteByte(0)
		b.WriteString(l.Value)
		b.WriteByte(0)
	}
	return b.String()
}

// SortLabels sorts labels by their names.
func SortLabels(labels []Label) {
	slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
}

// Apply returns those of the labels by which series are put together.
func (g *Grouping) Apply(labels []Label) []Label {
	var left []Label
	for _, l := range labels {
		if g != nil && slices.Contains(g.Labels, l.Name) != g.Without {
			left = append(left, l)
		}
	}
	return left
}

// Counter counts the lines of a range aggregation in the window of each point. It puts
// series together by sum if a grouping is given; nil means that it must not. by without
// labels is a grouping too.
type Counter func(a *RangeAggregation, by *Grouping) ([]*Series, error)

// noLabels is the grouping of an aggregation without one: all series are one.
var noLabels = &Grouping{}

// Evaluate returns the series of a metric at n points, sorted by their labels. A number
// is a series without labels.
func Evaluate(m Metric, n int, count Counter) ([]*Series, error) {
	e := &evaluator{n: n, count: count}
	all, err := e.metric(m)
	slices.SortFunc(all, func(a, b *Series) int { return compareLabels(a.Labels, b.Labels) })
	return all, err
}

func compareLabels(a, b []Label) int {
	return slices.CompareFunc(a, b, func(a, b Label) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
}

type evaluator struct {
	n     int
	count Counter // counts the events of a range aggregation
}

func (e *evaluator) metric(m Metric) ([]*Series, error) {
	switch m := m.(type) {
	case *Literal:
		return []*Series{e.constant(m.Value)}, nil
	case *Vector:
		return []*Series{e.constant(m.Value)}, nil
	case *RangeAggregation:
		return e.count(m, nil)
	case *VectorAggregation:
		return e.aggregate(m)
	case *Binary:
		return e.binary(m)
	}
	return nil, fmt.Errorf("logql: no way to evaluate %T", m)
}

func (e *evaluator) constant(v float64) *Series {
	s := NewSeries(nil, e.n)
	for i := range e.n {
		s.set(i, v)
	}
	return s
}

// aggregate puts series together. A sum of counts is made by the counter, which need not
// keep the series apart.
func (e *evaluator) aggregate(a *VectorAggregation) ([]*Series, error) {
	by := cmp.Or(a.Grouping, noLabels)
	if of, ok := a.Of.(*RangeAggregation); ok && a.Op == "sum" {
		return e.count(of, by)
	}
	of, err := e.metric(a.Of)
	if err != nil {
		return nil, err
	}
	groups := map[string][]*Series{}
	for _, s := range of {
		key := Key(by.Apply(s.Labels))
		groups[key] = append(groups[key], s)
	}
	var all []*Series
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if a.K > 0 {
			all = append(all, e.best(a, groups[key])...)
		} else {
			all = append(all, e.together(a.Op, by, groups[key]))
		}
	}
	return all, nil
}

// together is the one series of a group.
func (e *evaluator) together(op string, by *Grouping, group []*Series) *Series {
	one := NewSeries(by.Apply(group[0].Labels), e.n)
	for i := range e.n {
		v, n := 0.0, 0
		for _, s := range group {
			switch {
			case !s.Has[i]:
				continue
			case n == 0:
				v = s.Values[i]
			case op == "min":
				v = min(v, s.Values[i])
			case op == "max":
				v = max(v, s.Values[i])
			default:
				v += s.Values[i]
			}
			n++
		}
		if op == "avg" && n > 0 {
			v /= float64(n)
		}
		if n > 0 {
			one.set(i, v)
		}
	}
	return one
}

// best are the series of a group with their greatest or smallest values at each point. Of
// equal ones the first by labels count.
func (e *evaluator) best(a *VectorAggregation, group []*Series) []*Series {
	slices.SortFunc(group, func(a, b *Series) int { return compareLabels(a.Labels, b.Labels) })
	chosen := make([]*Series, len(group))
	for i := range e.n {
		var there []int
		for j, s := range group {
			if s.Has[i] {
				there = append(there, j)
			}
		}
		slices.SortStableFunc(there, func(x, y int) int {
			c := cmp.Compare(group[x].Values[i], group[y].Values[i])
			if a.Op == "topk" {
				return -c
			}
			return c
		})
		for _, j := range there[:min(a.K, len(there))] {
			if chosen[j] == nil {
				chosen[j] = NewSeries(group[j].Labels, e.n)
			}
			chosen[j].set(i, group[j].Values[i])
		}
	}
	return slices.DeleteFunc(chosen, func(s *Series) bool { return s == nil })
}

// binary computes with two operands: a number and each series, or the series that have
// the same labels on both sides.
func (e *evaluator) binary(b *Binary) ([]*Series, error) {
	left, err := e.metric(b.Left)
	if err != nil {
		return nil, err
	}
	right, err := e.metric(b.Right)
	if err != nil {
		return nil, err
	}
	if _, ok := b.Left.(*Literal); ok { // not both: the parser makes one number of two
		for _, s := range right {
			e.each(s, func(i int) float64 { return compute(b.Op, left[0].Values[i], s.Values[i]) })
		}
		return right, nil
	}
	if _, ok := b.Right.(*Literal); ok {
		for _, s := range left {
			e.each(s, func(i int) float64 { return compute(b.Op, s.Values[i], right[0].Values[i]) })
		}
		return left, nil
	}
	with := map[string]*Series{}
	for _, s := range right {
		with[Key(s.Labels)] = s
	}
	var all []*Series
	for _, s := range left {
		other := with[Key(s.Labels)]
		if other == nil {
			continue
		}
		for i := range e.n {
			s.Has[i] = s.Has[i] && other.Has[i]
		}
		e.each(s, func(i int) float64 { return compute(b.Op, s.Values[i], other.Values[i]) })
		all = append(all, s)
	}
	return all, nil
}

// each replaces the values of a series.
func (e *evaluator) each(s *Series, value func(i int) float64) {
	for i := range e.n {
		if s.Has[i] {
			s.Values[i] = value(i)
		}
	}
}

// compute evaluates one operation. A division by zero is NaN, as in Loki.
func compute(op string, a, b float64) float64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		if b == 0 {
			return math.NaN()
		}
		return a / b
	case "%":
		return math.Mod(a, b)
	default:
		return math.Pow(a, b)
	}
}
