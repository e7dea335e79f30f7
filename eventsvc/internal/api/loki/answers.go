package loki

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"tidings.example/eventsvc/internal/logql"
)

// success is an answer whose data are what a function appends. Loki has its warnings there, too.
func (r *request) success(data answer) answer {
	return func(b []byte) []byte {
		b = append(b, `{"status":"success",`...)
		if len(r.warnings) > 0 {
			b = append(appendJSON(append(b, `"warnings":`...), r.warnings), ',')
		}
		return append(data(append(b, `"data":`...)), "}\n"...)
	}
}

// data is the answer to a query. Of the statistics that Loki counts it has those that
// there are here.
func (r *request) data(kind string, result answer) answer {
	return r.success(func(b []byte) []byte {
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

// members is an answer that consists of an object, with the warnings if there are some.
func (r *request) members(all map[string]any) answer {
	if len(r.warnings) > 0 {
		all["warnings"] = r.warnings
	}
	return plain(all)
}

// plain is an answer that consists of one value.
func plain(v any) answer {
	return func(b []byte) []byte { return append(appendJSON(b, v), '\n') }
}

// appendJSON appends any value.
func appendJSON(b []byte, v any) []byte {
	text, _ := json.Marshal(v) // only of types that can be encoded
	return append(b, text...)
}

// appendList appends a list of n elements. It ends early when the answer is too long.
func appendList(b []byte, n int, element func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if len(b) > maxBytes {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, i)
	}
	return append(b, ']')
}

// appendLabels appends labels, sorted by their names.
func appendLabels(b []byte, labels []logql.Label) []byte {
	values := make(map[string]string, len(labels))
	for _, l := range labels {
		values[l.Name] = l.Value
	}
	return appendJSON(b, values)
}

// appendSample appends a point in time, in seconds, and a value as Prometheus has them.
func appendSample(b []byte, at time.Time, v float64) []byte {
	b = append(b, '[')
	millis := at.UnixMilli()
	b = strconv.AppendFloat(b, float64(millis)/1000, 'f', -1, 64)
	b = strconv.AppendFloat(append(b, `,"`...), v, 'f', -1, 64)
	return append(b, `"]`...)
}

func appendVector(b []byte, all []*logql.Series, at time.Time) []byte {
	all = slices.DeleteFunc(all, func(s *logql.Series) bool { return !s.Has[0] })
	return appendList(b, len(all), func(b []byte, i int) []byte {
		b = appendLabels(append(b, `{"metric":`...), all[i].Labels)
		return append(appendSample(append(b, `,"value":`...), at, all[i].Values[0]), '}')
	})
}

func appendMatrix(b []byte, all []*logql.Series, points []time.Time) []byte {
	all = slices.DeleteFunc(all, func(s *logql.Series) bool { return !slices.Contains(s.Has, true) })
	return appendList(b, len(all), func(b []byte, i int) []byte {
		s := all[i]
		b = appendLabels(append(b, `{"metric":`...), s.Labels)
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
	for _, e := range found {
		labels := slices.Clone(e.Labels)
		if categorized {
			labels = ofCategory(labels, logql.Stream)
		}
		logql.SortLabels(labels)
		key := logql.Key(labels)
		if byKey[key] == nil {
			byKey[key] = &streamed{labels: labels}
		}
		byKey[key].entries = append(byKey[key].entries, e)
	}
	var all []*streamed
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, byKey[key])
	}
	return all
}

func appendStreams(b []byte, found []*entry, categorized bool) []byte {
	all := streamsOf(found, categorized)
	return appendList(b, len(all), func(b []byte, i int) []byte {
		b = appendLabels(append(b, `{"stream":`...), all[i].labels)
		b = append(b, `,"values":`...)
		b = appendList(b, len(all[i].entries), func(b []byte, j int) []byte { return appendEntry(b, all[i].entries[j], categorized) })
		return append(b, '}')
	})
}

// appendEntry appends an entry: time, line and, if the client wants categories, labels
// that are not of the stream.
func appendEntry(b []byte, e *entry, categorized bool) []byte {
	b = strconv.AppendInt(append(b, `["`...), e.at.Time.UnixNano(), 10)
	b = appendJSON(append(b, `",`...), e.Line)
	if !categorized {
		return append(b, ']')
	}
	b = append(b, ",{"...)
	metadata, parsed := ofCategory(e.Labels, logql.Metadata), ofCategory(e.Labels, logql.Parsed)
	if len(metadata) > 0 {
		b = appendLabels(append(b, `"structuredMetadata":`...), metadata)
	}
	if len(metadata) > 0 && len(parsed) > 0 {
		b = append(b, ',')
	}
	if len(parsed) > 0 {
		b = appendLabels(append(b, `"parsed":`...), parsed)
	}
	return append(b, "}]"...)
}

func ofCategory(labels []logql.Label, c logql.Category) (found []logql.Label) {
	for _, l := range labels {
		if l.Category == c {
			found = append(found, l)
		}
	}
	return found
}
