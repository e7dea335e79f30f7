package seglog

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// dimensions is how many texts a series has.
const dimensions = 7

// appendSeries appends the texts of the series that a record belongs to, which are its
// [event.DimensionsOf] without the node, and returns that apart. A cluster has so many nodes that
// with them nearly each event would be a series of its own.
func appendSeries(dst, namespace []byte, a event.Attributes) (texts []byte, node string) {
	var kind, typ, reason, reporter, source, host []byte
	for f, text := range a.Fields() {
		switch f {
		case event.Type:
			typ = text
		case event.Reason:
			reason = text
		case event.RegardingKind:
			kind = text
		case event.ReportingController:
			reporter = text
		case event.Source:
			source = text
		case event.Node:
			host = text
		}
	}
	for _, text := range [][]byte{namespace, typ, reason, kind, event.Reporter(reporter, source)} {
		dst = appendText(dst, event.CutDimension(text))
	}
	for _, text := range []string{a.Get(event.ClusterLabel), event.OwnerOf(a.Get)} {
		dst = appendText(dst, event.CutDimension(text))
	}
	return dst, event.CutDimension(cmp.Or(a.Get(event.NodeLabel), string(host)))
}

// nodeTexts returns the texts of a node, which has a number like a series.
func nodeTexts(node string) string {
	return string(appendText(nil, node))
}

// seriesKey returns the key under which the texts of a series are kept.
func seriesKey(series uint32) []byte { return be.AppendUint32(nil, series) }

// seriesValue returns the value that is kept under the key of a series.
func seriesValue(key []byte, texts string) []byte {
	v := append(make([]byte, 0, len(texts)+runChecksumLen), texts...)
	return be.AppendUint32(v, runChecksum(key, v))
}

// seriesTexts verifies a value that is kept under the key of a series, and returns its texts as
// [appendSeries] does.
func seriesTexts(key, value []byte) ([]byte, error) {
	n := len(value) - runChecksumLen
	if len(key) != 4 || n < 0 || be.Uint32(value[n:]) != runChecksum(key, value[:n]) {
		return nil, fmt.Errorf("series %x of a segment: %w", key, boltfile.ErrChecksum)
	}
	return value[:n], nil
}

// parseSeries returns the dimensions that appendSeries has encoded or, of the single text of a node, that one.
func parseSeries(texts []byte) (d event.Dimensions, err error) {
	rest := string(texts)
	if n, size := binary.Uvarint(texts); size > 0 && n == uint64(len(rest)-size) {
		return event.Dimensions{Node: rest[size:]}, nil
	}
	for _, text := range [dimensions]*string{&d.Namespace, &d.Type, &d.Reason, &d.Kind, &d.Reporter, &d.Cluster, &d.Owner} {
		n, size := binary.Uvarint(texts[len(texts)-len(rest):])
		if size <= 0 || n > uint64(len(rest)-size) {
			return d, fmt.Errorf("series of a segment: %w", boltfile.ErrChecksum)
		}
		*text, rest = rest[size:size+int(n)], rest[size+int(n):]
	}
	return d, nil
}
