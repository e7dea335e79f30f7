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

// decodedByLibrary decodes an object by the standard library's decoder, token by token.
func decodedByLibrary(data []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') || !utf8.Valid(data) {
		return nil, errors.New("no object in UTF-8")
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		name, _ := token.(string)
		_, twice := members[name]
		if err != nil || twice || strings.ContainsRune(name, utf8.RuneError) {
			return nil, errors.New("a name that is none, or was there")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		members[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return members, nil
}

// FuzzObject: an object is decoded as by the library, and what the library refuses is refused. Objects that only the library
// accepts are those with errors between tokens, which it does not check.
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
		want, libraryErr := decodedByLibrary(data)
		if (err == nil) != (libraryErr == nil) && (err == nil || json.Valid(data)) {
			t.Fatalf("%q: %v, by the library %v", data, err, libraryErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, map[string]json.RawMessage(got)); diff != "" {
			t.Errorf("%q (-library +ours):\n%s", data, diff)
		}
	})
}
