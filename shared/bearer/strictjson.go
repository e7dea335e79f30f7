package bearer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// object is a JSON object whose members are not decoded yet. Names are case-sensitive; structs of encoding/json would
// accept EXP for exp.
type object map[string]json.RawMessage

// DecodeObject decodes exactly one JSON object. It refuses input that decoders interpret differently: duplicate names,
// bytes after the object, and text that is not UTF-8.
func DecodeObject(data []byte) (map[string]json.RawMessage, error) { return decodeObject(data) }

func decodeObject(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	if !json.Valid(data) { // what follows relies on this
		return nil, errors.New("damaged JSON, or more than one value")
	}
	rest := skipBlanks(data)
	if rest[0] != '{' {
		return nil, errors.New("no JSON object")
	}
	o := object{}
	for rest = skipBlanks(rest[1:]); rest[0] != '}'; rest = skipBlanks(rest) {
		if rest[0] == ',' {
			rest = skipBlanks(rest[1:])
		}
		end := stringEnd(rest)
		name, ok := decodeText(rest[:end])
		if !ok {
			return nil, errors.New("half a character") // see decodeText
		}
		if o.has(name) {
			return nil, fmt.Errorf("the name %q is there twice", name)
		}
		rest = skipBlanks(skipBlanks(rest[end:])[1:]) // the colon
		end = valueEnd(rest)
		o[name] = json.RawMessage(rest[:end:end])
		rest = rest[end:]
	}
	return o, nil
}

// skipBlanks returns valid JSON from the first byte on that is no white space.
func skipBlanks(data []byte) []byte { return bytes.TrimLeft(data, " \t\r\n") }

// stringEnd returns the length of the string that valid JSON begins with.
func stringEnd(data []byte) int {
	for i := 1; ; i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// valueEnd returns the length of the value that a member of a valid JSON object begins with.
func valueEnd(data []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch data[i] {
		case '"':
			i += stringEnd(data[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// decodeText decodes a string of valid JSON. It returns false for an unpaired surrogate: Go replaces each of them by
// U+FFFD, so different names would become equal.
func decodeText(raw []byte) (string, bool) {
	var s string
	if bytes.IndexByte(raw, '\\') < 0 {
		s = string(raw[1 : len(raw)-1])
	} else if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, !strings.ContainsRune(s, utf8.RuneError)
}

// has reports whether there is a member of this name, whatever its value.
func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

// given reports whether there is a member of this name that is not null.
func (o object) given(name string) bool { return o.has(name) && string(o[name]) != "null" }

// text returns a member that is a string without unpaired surrogates.
func (o object) text(name string) (string, bool) {
	raw := o[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return decodeText(raw)
}

// texts returns a member that is a list of strings.
func (o object) texts(name string) ([]string, bool) {
	var items []json.RawMessage
	if err := json.Unmarshal(o[name], &items); err != nil || items == nil {
		return nil, false
	}
	list := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := object{"": item}.text("")
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

// textOrTexts returns a member that is a string or a list of strings, as aud may be (RFC 7519 section 4.1.3).
func (o object) textOrTexts(name string) ([]string, bool) {
	if s, ok := o.text(name); ok {
		return []string{s}, true
	}
	return o.texts(name)
}

// latestDate is the last second of the year 9999, the last year that RFC 3339 can express.
const latestDate = 253402300799

// date returns a member that is a NumericDate (RFC 7519 section 2): seconds since 1970, possibly with a fraction.
func (o object) date(name string) (time.Time, bool) {
	raw := o[name]
	if len(raw) == 0 || raw[0] < '0' || raw[0] > '9' { // no string, null, list or negative number
		return time.Time{}, false
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || seconds > latestDate {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}
