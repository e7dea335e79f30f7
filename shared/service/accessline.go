package service

import (
	"log/slog"
	"math"
	"strconv"
	"time"
)

// writePlain writes an info line exactly as slog's JSON handler would, at a small part of the cost, because access lines are a
// considerable part of the cost of a small request. It returns false, and writes nothing, if a text needs escaping; the
// caller then uses that handler.
func (h flushing) writePlain(t time.Time, msg string, attrs []slog.Attr) bool {
	if !h.json {
		return false
	}
	var room [1024]byte
	line, ok := appendPlain(room[:0], t, msg, attrs)
	if !ok {
		return false
	}
	_, _ = h.lines.Write(line) // there is nowhere to report that the log cannot be written
	if slog.LevelInfo >= h.level {
		_ = h.lines.flush()
	}
	return true
}

func appendPlain(b []byte, t time.Time, msg string, attrs []slog.Attr) ([]byte, bool) {
	if year := t.Year(); year < 0 || year > 9999 || !plainText(msg) {
		return b, false
	}
	b = append(t.AppendFormat(append(b, `{"time":"`...), time.RFC3339Nano), `","level":"INFO","msg":"`...)
	b = append(append(b, msg...), '"')
	for _, a := range attrs {
		if a.Key == "" || !plainText(a.Key) {
			return b, false
		}
		b = append(append(append(b, `,"`...), a.Key...), `":`...)
		switch a.Value.Kind() {
		case slog.KindString:
			text := a.Value.String()
			if !plainText(text) {
				return b, false
			}
			b = append(append(append(b, '"'), text...), '"')
		case slog.KindInt64:
			b = strconv.AppendInt(b, a.Value.Int64(), 10)
		case slog.KindFloat64:
			f := a.Value.Float64()
			if size := math.Abs(f); f != 0 && (size < 1e-6 || size >= 1e21) || math.IsNaN(f) { // written with an exponent, or not at all
				return b, false
			}
			b = strconv.AppendFloat(b, f, 'f', -1, 64)
		case slog.KindBool:
			b = strconv.AppendBool(b, a.Value.Bool())
		default:
			return b, false
		}
	}
	return append(b, "}\n"...), true
}

// plainText reports whether a text needs no escaping in JSON.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
