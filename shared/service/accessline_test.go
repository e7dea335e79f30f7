package service

import (
	"bytes"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestPlainLines: a plain line is what the JSON handler writes, for random attributes.
func TestPlainLines(t *testing.T) {
	t.Parallel()
	texts := []string{"", "GET", "/a b", `a"b`, `a\b`, "a<b>&c", "ä", "a\tb", "\x7f", "~ !"}
	floats := []float64{0, 0.001, 12.5, -3, 1e-6, 1e-7, 1e20, 1e21, math.NaN(), math.Inf(1), math.Copysign(0, -1), 123456.789}
	plain := 0
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 1))
		text := func() string { return texts[random.IntN(len(texts))] }
		var attrs []slog.Attr
		for range random.IntN(4) {
			attrs = append(attrs, []slog.Attr{
				slog.String(text(), text()), slog.Int("n", random.Int()-math.MaxInt/2), slog.Bool("b", seed%2 == 0),
				slog.Float64("f", floats[random.IntN(len(floats))]), slog.Duration("d", time.Second), slog.Any("a", nil),
				slog.Group("g", slog.Int("n", 1)), {},
			}[random.IntN(8)])
		}
		at, msg := time.Unix(0, random.Int64()).In([]*time.Location{time.UTC, time.FixedZone("", 3600)}[seed%2]), text()
		got, ok := appendPlain(nil, at, msg, attrs)
		if !ok {
			continue
		}
		plain++
		record := slog.NewRecord(at, slog.LevelInfo, msg, 0)
		record.AddAttrs(attrs...)
		var want bytes.Buffer
		if err := slog.NewJSONHandler(&want, nil).Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if want.String() != string(got) {
			t.Fatalf("seed %d: got\n%s want\n%s", seed, got, &want)
		}
	}
	if plain < 500 {
		t.Errorf("only %d lines were plain", plain)
	}
}
