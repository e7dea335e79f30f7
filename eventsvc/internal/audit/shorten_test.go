package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// maxEntry is how many bytes an entry has at most: its texts, and its counts by namespace.
const maxEntry = 12 << 10

// TestEveryTextIsShortened fills every text of an entry, also those that are added later, with what JSON makes longest.
func TestEveryTextIsShortened(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"letters": strings.Repeat("x", 30_000), "controls": strings.Repeat("\x01", 30_000), "no UTF-8": strings.Repeat("\xff", 30_000),
		"quotes": strings.Repeat(`"\`, 15_000), "markup": strings.Repeat("<&>", 10_000), "lines": strings.Repeat("\u2028", 10_000),
		"wide": strings.Repeat("界", 10_000),
	} {
		e := &Entry{Impersonate: &Impersonate{}, Wrote: Wrote{}}
		fill(reflect.ValueOf(e).Elem(), text)
		for i := range 1000 {
			e.Wrote.Add(fmt.Sprint(i, text), 201, false)
		}
		e.shorten()
		var line bytes.Buffer
		lines := json.NewEncoder(&line)
		lines.SetEscapeHTML(false)
		if err := lines.Encode(e); err != nil {
			t.Fatal(err)
		}
		if line.Len() > maxEntry || line.Len() < 17*maxText {
			t.Errorf("%s: an entry has %d bytes:\n%.500s", name, line.Len(), line.String())
		}
		all := 0
		for _, n := range e.Wrote {
			all += n.Created
		}
		if all != 1000 || len(e.Wrote) != maxWrote+1 || e.Wrote["…"] == nil {
			t.Errorf("%s: %d events in %d namespaces", name, all, len(e.Wrote))
		}
	}
}

// fill sets all texts below v.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text)
			}
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "",
		strings.Repeat("x", maxText):            strings.Repeat("x", maxText),
		strings.Repeat("x", maxText+1):          strings.Repeat("x", maxText) + "…",
		strings.Repeat("x", maxText-1) + "ü":    strings.Repeat("x", maxText-1) + "…",
		strings.Repeat("\x00", maxText/6+1):     strings.Repeat("\x00", maxText/6) + "…",
		strings.Repeat(`"`, maxText/2) + `"end`: strings.Repeat(`"`, maxText/2) + "…",
	} {
		if got := shorten(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
