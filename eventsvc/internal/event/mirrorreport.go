package event

import (
	"cmp"
	"encoding/binary"

	eventsv1 "k8s.io/api/events/v1"
)

// Report is what a mirror says of its work: a [Gap] or a [Cursor].
type Report struct {
	Gap    Gap
	Cursor Cursor
}

// ReportOf returns what an event reports, whoever wrote it.
func ReportOf(ev *eventsv1.Event) (r Report, ok bool) {
	if r.Gap, ok = GapOf(ev); !ok {
		r.Cursor, ok = CursorOf(ev)
	}
	return r, ok
}

// Cluster returns the cluster that the report is about.
func (r Report) Cluster() string { return cmp.Or(r.Gap.Cluster, r.Cursor.Cluster) }

// ClaimsReport reports whether the event of the attributes claims to be a [Report]. Anybody can write such an event.
func (a Attributes) ClaimsReport() bool {
	switch string(a.Field(Reason)) {
	case GapReason, DroppedReason, CursorReason:
		return true
	}
	return false
}

// Bookkeeping reports whether events with these dimensions claim to be what a mirror says of its own work. Nobody who
// asks what happened in a cluster looks for these.
func (d *Dimensions) Bookkeeping() bool {
	return d.Reporter == GapReporter && (d.Reason == GapReason || d.Reason == DroppedReason || d.Reason == CursorReason)
}

// WithReport marks attributes with the report of their event. The attributes must have an occurrence. Only the server
// marks reports, and only the ones that it believes: no field or label of an event sets the mark.
func (a Attributes) WithReport(r Report) Attributes {
	m := marks{version: a.Version()}
	switch {
	case r.Gap.From.Before(r.Gap.To):
		m.from, m.to, m.rule, m.count = r.Gap.From.Unix(), r.Gap.To.Unix(), r.Gap.Rule, r.Gap.Count
	case !r.Cursor.Complete.IsZero():
		m.from = r.Cursor.Complete.Unix()
		m.to = m.from
	}
	return a.withMarks(m)
}

// Believed reports whether the attributes are marked with a report.
func (a Attributes) Believed() bool { return a.marks().to != 0 }

// WithVersion notes the version that an imported event had in its original store, so that an older version that
// is imported later does not replace it.
func (a Attributes) WithVersion(version uint64) Attributes {
	m := a.marks()
	m.version = version
	return a.withMarks(m)
}

// Version returns the version that the event had in its original store, 0 if it is not known.
func (a Attributes) Version() uint64 { return a.marks().version }

// marks are the server's notes about a version. Times are in seconds since 1970.
type marks struct {
	from, to int64 // times of a gap; equal: when a cluster was complete, as its cursor says; 0: no report is believed
	version  uint64
	rule     string // the rule that dropped events, if the gap is one of a rule
	count    int64
}

// withMarks sets the marks: the times (varints), the version (uvarint) and, if there is a rule, the rule (length and
// text) and its count (varint).
func (a Attributes) withMarks(m marks) Attributes {
	before := a[:len(a)-len(a.Mark())]
	marked := append(make(Attributes, 0, len(a)+24), before...)
	marked = binary.AppendUvarint(binary.AppendVarint(binary.AppendVarint(marked, m.from), m.to), m.version)
	if m.rule == "" {
		return marked
	}
	return binary.AppendVarint(appendText(marked, m.rule), m.count)
}

// marks returns the marks that withMarks has set.
func (a Attributes) marks() (m marks) {
	b := a.Mark()
	from, n := binary.Varint(b)
	if n <= 0 {
		return m
	}
	to, k := binary.Varint(b[n:])
	if k <= 0 {
		return m
	}
	m.from, m.to, b = from, to, b[n+k:]
	if m.version, n = binary.Uvarint(b); n > 0 && len(b) > n {
		rule, rest := cutText(b[n:])
		m.rule = string(rule)
		m.count, _ = binary.Varint(rest)
	}
	return m
}
