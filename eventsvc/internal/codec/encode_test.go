package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
)

// TestAppendSet: a set of fields is written as encoding/json writes it, or
// refused as there, on the fast path and on the slow one.
func TestAppendSet(t *testing.T) {
	t.Parallel()
	for set, plain := range map[string]bool{
		`{}`:            true,
		`{"f:note":{}}`: true,
		`{"f:metadata":{"f:labels":{".":{},"f:a/b":{}}},"f:series":{".":{},"f:count":{}},"f:type":{}}`: true,
		`{"":{}}`:                           true,
		`{ "f:note": {} }`:                  false,
		`{"f:a":{"k:{\"type\":\"x\"}":{}}}`: true,
		`{"f:<":{}}`:                        false,
		`{"f:ü":{}}`:                        false,
		`{"f:a":[]}`:                        true,
		`{"f:a":{},"f:b":null}`:             true,
		`{"f:a":{}`:                         false,
		`{"f:a":{}}}`:                       false,
		`{"f:a":{},}`:                       false,
		`{"f:a":{}"f:b":{}}`:                false,
		`{,"f:a":{}}`:                       false,
		`{{}}`:                              false,
		`{}{}`:                              false,
		`{"f:a"{}}`:                         false,
		`{"f:a":}`:                          false,
		`{"f:a`:                             false,
		`}`:                                 false,
		strings.Repeat(`{"f:a":`, 9) + "{}" + strings.Repeat("}", 9): true,
		`null`: true,
		``:     false,
	} {
		got, short, err := codec.AppendSet(set)
		want, wantErr := json.Marshal(&metav1.FieldsV1{Raw: []byte(set)})
		if short != plain || (err == nil) != (wantErr == nil) {
			t.Errorf("%s is plain: %t, want %t; error %v, want %v", set, short, plain, err, wantErr)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set, diff)
		}
	}
}
