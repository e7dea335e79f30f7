package loki

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"tidings.example/eventsvc/internal/logql"
)

// success is an answer whose data are what a function appends.
func success(data answer) answer {
	return func(b []byte) []byte {
		b = append(b, `{"status":"success","data":`...)
		return append(data(b), "}\n"...)
	}
}

// data is the answer to a query. Of the statistics that Loki counts it has those that
// there are here.
func (r *request) data(kind string, result answer) answer {
	return success(func(b []byte) []byte {
		b = append(append(append(b, `{"resultType":"`...), kind...), '"')
		if r.categorized() {
			b = append(b, `,"encodingFlags":["categorize-labels"]`...)
		}
		b = result(append(b, `,"result":`...))
		b = append(b, `,"stats":{"summary":{"bytesProcessedPerSecond":0,"linesProcessedPerSecond":0,"totalBytesProcessed":0,"totalLinesProcessed":`...)
		b = strconv.AppendInt(b, int64(r.looked), 10)
		return append(b, `,"execTime":0,"queueTime":0,"subqueries":0,"totalEntriesReturned":0,"splits":0,"shards":0}}}`...)
	})
}

// appendText appends a JSON string.
func appendText(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a text has no value that cannot be encoded
	return append(b, quoted...)
}

// appendJSON appends any value.
func appendJSON(b []byte, v any) []byte {
	text, _ := json.Marshal(v) // only of types that can be encoded
	return append(b, text...)
}

// appendList appends a list of n elements.
func appendList(b []byte, n int, element func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, i)
	}
	return append(b, ']')
}

// appendLabels appends the labels of a category, or all with a negative one.
func appendLabels(b []byte, labels []logql.Label, category int) []byte {
	b = append(b, '{')
	first := true
	for _, l := range labels {
		if category >= 0 && l.Category != logql.Category(category) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendText(append(appendText(b, l.Name), ':'), l.Value)
	}
	return append(b, '}')
}

// anyCategory is the category of appendLabels that stands for all.
const anyCategory = -1

// appendSample appends a point in time, in seconds, and a value as Prometheus has them.
func appendSample(b []byte, at time.Time, v float64) []byte {
	b = append(b, '[')
	millis := at.UnixMilli()
	b = strconv.AppendFloat(b, float64(millis)/1000, 'f', -1, 64)
	b = append(b, `,"`...)
	switch {
	case math.IsNaN(v):
		b = append(b, "NaN"...)
	case math.IsInf(v, 0):
		b = append(append(b, map[bool]string{true: "+", false: "-"}[v > 0]...), "Inf"...)
	default:
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return append(b, `"]`...)
}

func appendVector(b []byte, all []*logql.Series, at time.Time) []byte {
	all = slices.DeleteFunc(all, func(s *logql.Series) bool { return !s.Has[0] })
	return appendList(b, len(all), func(b []byte, i int) []byte {
		b = appendLabels(append(b, `{"metric":`...), all[i].Labels, anyCategory)
		return append(appendSample(append(b, `,"value":`...), at, all[i].Values[0]), '}')
	})
}

func appendMatrix(b []byte, all []*logql.Series, points []time.Time) []byte {
	all = slices.DeleteFunc(all, func(s *logql.Series) bool { return !slices.Contains(s.Has, true) })
	return appendList(b, len(all), func(b []byte, i int) []byte {
		s := all[i]
		b = appendLabels(append(b, `{"metric":`...), s.Labels, anyCategory)
		b = append(b, `,"values":[`...)
		first := true
		for j, at := range points {
			if !s.Has[j] {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendSample(b, at, s.Values[j])
		}
		return append(b, "]}"...)
	})
}

// streamed is a stream with its entries in the order of the answer.
type streamed struct {
	labels  []logql.Label
	entries []*entry
}

// streamsOf puts entries together by the labels of their streams. A client that does not
// ask for categories sees all labels as those of the stream, as in Loki.
func streamsOf(found []*entry, categorized bool) []*streamed {
	byKey := map[string]*streamed{}
	var keys []string
	for _, e := range found {
		labels := slices.Clone(e.Labels)
		if categorized {
			labels = slices.DeleteFunc(labels, func(l logql.Label) bool { return l.Category != logql.Stream })
		}
		logql.SortLabels(labels)
		key := logql.Key(labels)
		if byKey[key] == nil {
			byKey[key] = &streamed{labels: labels}
			keys = append(keys, key)
		}
		byKey[key].entries = append(byKey[key].entries, e)
	}
	slices.Sort(keys)
	all := make([]*streamed, len(keys))
	for i, key := range keys {
		all[i] = byKey[key]
	}
	return all
}

func appendStreams(b []byte, found []*entry, categorized bool) []byte {
	all := streamsOf(found, categorized)
	return appendList(b, len(all), func(b []byte, i int) []byte {
		b = appendLabels(append(b, `{"stream":`...), all[i].labels, anyCategory)
		b = append(b, `,"values":`...)
		b = appendList(b, len(all[i].entries), func(b []byte, j int) []byte { return appendEntry(b, all[i].entries[j], categorized) })
		return append(b, '}')
	})
}

// appendEntry appends an entry: time, line and, if the client wants categories, labels
// that are not of the stream.
func appendEntry(b []byte, e *entry, categorized bool) []byte {
	b = strconv.AppendInt(append(b, `["`...), e.at.Time.UnixNano(), 10)
	b = appendText(append(b, `",`...), e.Line)
	if !categorized {
		return append(b, ']')
	}
	slices.SortStableFunc(e.Labels, func(x, y logql.Label) int {
		return cmp.Or(cmp.Compare(x.Category, y.Category), cmp.Compare(x.Name, y.Name))
	})
	b = append(b, ",{"...)
	has := func(c logql.Category) bool {
		return slices.ContainsFunc(e.Labels, func(l logql.Label) bool { return l.Category == c })
	}
	if has(logql.Metadata) {
		b = appendLabels(append(b, `"structuredMetadata":`...), e.Labels, int(logql.Metadata))
	}
	if has(logql.Parsed) {
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		b = appendLabels(append(b, `"parsed":`...), e.Labels, int(logql.Parsed))
	}
	return append(b, "}]"...)
}
