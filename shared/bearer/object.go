package bearer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// object is a JSON object with its members undecoded. Names are exact: encoding/json's structs would take EXP for exp.
type object map[string]json.RawMessage

// decodeObject decodes exactly one JSON object. It refuses what decoders disagree about: names given twice, bytes behind
// the object and text that is not UTF-8.
func decodeObject(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, errors.New("no JSON object")
	}
	o := object{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, errors.New("damaged JSON")
		}
		key, _ := name.(string) // encoding/json admits nothing else as a name
		if strings.ContainsRune(key, utf8.RuneError) {
			return nil, errors.New("half a character")
		}
		if _, twice := o[key]; twice {
			return nil, errors.New("a name given twice")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, errors.New("damaged JSON")
		}
		o[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("damaged JSON")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return o, nil
}

// has says whether there is a member of this name, whatever its value.
func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

// text is a member that is a string. Halves of surrogate pairs are refused: Go makes the same character of all of them,
// so that different names would become one.
func (o object) text(name string) (string, bool) {
	raw := o[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil && !strings.ContainsRune(s, utf8.RuneError)
}

// texts is a member that is a list of strings.
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

// textOrTexts is a member that is a string or a list of strings, as aud may be (RFC 7519 section 4.1.3).
func (o object) textOrTexts(name string) ([]string, bool) {
	if s, ok := o.text(name); ok {
		return []string{s}, true
	}
	return o.texts(name)
}

// latestDate is the end of the year 9999, the last that formatted times can show.
const latestDate = 253402300799

// date is a member that is a NumericDate (RFC 7519 section 2): seconds since 1970, possibly with a fraction.
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
