package bearer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/bearer"
)

// FuzzObject: an object that is accepted is valid UTF-8 and is decoded as by json.Unmarshal. None
// of its members is given twice.
func FuzzObject(f *testing.F) {
	for _, text := range []string{
		``, `{}`, ` { } `, `{"a":1}`, `{"a":"b","c":"d\"}","e":[1,{"f":"]"}],"g":-1.5e3 , "h" : null}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
		`{"\ud800":1}`, "{\"\ufffd\":1}", "{\"\xff\":1}", `{"a":1}{}`, `{"a":1} x`, `[]`, `"a"`, `7`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`,
		`{"a":tru}`, `{"a":[}`, `{"a":{}`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a" 1}`, strings.Repeat(`{"a":`, 50) + "1" + strings.Repeat("}", 50),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := bearer.DecodeObject(data)
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil || want == nil || !utf8.Valid(data) {
			t.Fatalf("%q was accepted: %v", data, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-library +ours):\n%s", data, diff)
		}
		if names := namesOf(t, data); len(names) != len(got) {
			t.Errorf("%q was accepted with the names %q", data, names)
		}
	})
}

// namesOf returns the names of all members of an object, including those that are given twice.
func namesOf(t *testing.T, object []byte) (names []string) {
	dec := json.NewDecoder(bytes.NewReader(object))
	for depth, isName := 0, false; ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			isName = depth == 1
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 1 && isName {
			names = append(names, token.(string))
		}
		isName = depth == 1 && !isName
	}
}
