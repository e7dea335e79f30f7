package seglog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"tidings.example/eventsvc/internal/store"
)

// bucketSums has, in a segment that was written again, what its runs report of each hour.
const bucketSums = "sums"

// hourSeconds is how long sums last.
const hourSeconds = 60 * 60

// hourOf returns the hour of a minute since 1970.
func hourOf(minute int64) int64 {
	hour, _ := minuteOf(minute)
	return hour
}

// hourKey returns the key of the sums of an hour.
func hourKey(hour int64) []byte { return be.AppendUint64(nil, uint64(hour)^signBit) }

// An hourSum says how often a series was observed within an hour, or within a span that reaches beyond its end.
type hourSum struct {
	series uint32
	first  uint16 // second of the hour
	length uint32 // seconds from there to the last observation, or of the span
	spread bool   // it is a span
	count  int64
}

func (s hourSum) compare(o hourSum) int {
	return cmp.Or(cmp.Compare(s.series, o.series), cmp.Compare(s.first, o.first), cmp.Compare(s.length, o.length), cmp.Compare(s.count, o.count))
}

// hourSums sums up what runs report, minute by minute, and calls Put with what is kept of each hour.
type hourSums struct {
	Put func(key, value []byte) error

	minute int64
	sums   []hourSum
	places map[uint32]int // of the sums that are no spans, by series
}

// Add adds what was observed in a minute, which is none before that of the last call.
func (h *hourSums) Add(minute int64, entries []runEntry) error {
	if len(h.sums) > 0 && minute < h.minute {
		return errRun
	}
	if hourOf(minute) != hourOf(h.minute) {
		if err := h.Flush(); err != nil {
			return err
		}
	}
	h.minute = minute
	for _, e := range entries {
		s := hourSum{series: e.Series, first: uint16((minute-hourOf(minute)*60)*60 + int64(e.Second)), count: e.Count}
		switch s.spread = int64(s.first)+int64(e.Span) > hourSeconds; {
		case e.Count == 0:
		case s.spread:
			s.length = e.Span
			h.sums = append(h.sums, s)
		default:
			h.add(s)
		}
	}
	return nil
}

// add adds what was observed in one second.
func (h *hourSums) add(s hourSum) {
	i, ok := h.places[s.series]
	if !ok {
		if h.places == nil {
			h.places = map[uint32]int{}
		}
		h.places[s.series] = len(h.sums)
		h.sums = append(h.sums, s)
		return
	}
	of := &h.sums[i]
	last := max(uint32(of.first)+of.length, uint32(s.first))
	of.first = min(of.first, s.first)
	of.length = last - uint32(of.first)
	of.count += s.count
}

// Flush calls Put with what was added since the hour began.
func (h *hourSums) Flush() error {
	if len(h.sums) == 0 {
		return nil
	}
	slices.SortFunc(h.sums, hourSum.compare)
	k := hourKey(hourOf(h.minute))
	v := appendSums(nil, k, h.sums)
	h.sums = h.sums[:0]
	clear(h.places)
	return h.Put(k, v)
}

// appendSums appends the value of the sums of an hour, which are in order.
func appendSums(dst, key []byte, sums []hourSum) []byte {
	start, series := len(dst), uint32(0)
	for _, s := range sums {
		length := uint64(s.length) << 1
		if s.spread {
			length |= 1
		}
		dst = binary.AppendUvarint(dst, uint64(s.series-series))
		dst = binary.AppendUvarint(dst, uint64(s.first))
		dst = binary.AppendUvarint(dst, length)
		dst = binary.AppendUvarint(dst, uint64(s.count))
		series = s.series
	}
	return be.AppendUint32(dst, runChecksum(key, dst[start:]))
}

var errSums = errors.New("no sums of this hour")

// readSums appends the sums of the series that have a group to what was observed. After an error it may have appended
// some.
func readSums(dst []store.Occurred, k, v []byte, group func(series uint32) (int, error)) ([]store.Occurred, error) {
	body := len(v) - runChecksumLen
	if len(k) != 8 || body < 0 || be.Uint32(v[body:]) != runChecksum(k, v[:body]) {
		return dst, errSums
	}
	start := int64(be.Uint64(k)^signBit) * hourSeconds
	b, series := v[:body], uint32(0)
	var s hourSum
	for at := 0; at < len(b); {
		if at = s.cut(b, at); at > len(b) || s.series > math.MaxUint32-series {
			return dst, errSums
		}
		series += s.series
		n, err := group(series)
		if err != nil {
			return dst, err
		}
		if n < 0 {
			continue
		}
		dst = append(dst, store.Occurred{Group: n, Second: start + int64(s.first), Count: s.count})
		if o := &dst[len(dst)-1]; s.spread {
			o.Span = int64(s.length)
		} else {
			o.Length = int64(s.length)
		}
	}
	return dst, nil
}

// cut reads a sum, whose series is the difference to that of the sum before, and returns where it ends, behind the end
// of b if it makes no sense.
func (s *hourSum) cut(b []byte, at int) (end int) {
	series, at := cutNumber(b, at)
	first, at := cutNumber(b, at)
	length, at := cutNumber(b, at)
	count, at := cutNumber(b, at)
	last := first + length>>1
	if series > math.MaxUint32 || first >= hourSeconds || length>>1 > math.MaxUint32 || last == hourSeconds || (length&1 > 0) != (last > hourSeconds) ||
		count-1 >= math.MaxInt64 {
		return len(b) + 1
	}
	s.series, s.first, s.length, s.spread, s.count = uint32(series), uint16(first), uint32(length>>1), length&1 > 0, int64(count)
	return at
}

// noHour is no begin of an hour.
const noHour = -1

// gatherHour takes the next hour as a whole: from each part its sums or, where there are none, its runs. It returns the
// second in which the hour begins, or noHour if it has to be counted minute by minute, because some of it is outside of
// the range or was counted already, or because there is so much of it that others would wait.
func (m *Moments) gatherHour() (start int64, more bool, err error) {
	if !m.Hours || m.Nodes {
		return noHour, true, nil
	}
	if more, err = m.next(); err != nil || !more {
		return 0, false, err
	}
	hour := hourOf(m.minute)
	start = hour * hourSeconds
	if start < m.From || start+hourSeconds > m.To {
		return noHour, true, nil
	}
	m.size = 0
	for _, p := range m.parts {
		if m.size >= roundBytes {
			break
		}
		taken, err := m.takeSums(p, hour)
		if err == nil && !taken {
			err = m.take(p, func(minute int64) bool { return minute >= hour*60 && m.size < roundBytes })
		}
		if err != nil {
			return 0, false, err
		}
	}
	if m.size >= roundBytes {
		m.begin(m.reader, m.parts)
		return noHour, true, nil
	}
	return start, true, nil
}

// takeSums takes the sums of an hour from a part. It reports false if the part has none that can be read, or if they
// count what was written later than is asked for.
func (m *Moments) takeSums(of part, hour int64) (taken bool, err error) {
	p, ok := of.(*stored)
	if minute, any, err := of.minute(); !ok || err != nil || !any || minute < hour*60 {
		return false, err
	}
	if err := p.open(); err != nil || p.sums == nil || p.reader.segments[p.segment+1].Base-1 > m.Last {
		return false, err
	}
	g := m.grouping(p)
	k, n := hourKey(hour), len(m.sums)
	v := p.sums.Get(k)
	if m.size += len(v); m.size >= roundBytes {
		return true, nil // the hour begins again, minute by minute
	}
	sums, err := readSums(m.sums, k, v, func(series uint32) (int, error) { return m.ofSeries(g, p, series) })
	if err != nil { // the runs are there too
		m.sums = m.sums[:n]
		return false, nil
	}
	p.seek(hour*60-1, false)
	m.sums = sums
	return true, nil
}
