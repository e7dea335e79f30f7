package apitest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The forms of an answer, and what asks for them behind them.
const (
	Protobuf   = "application/vnd.kubernetes.protobuf"
	AsTable    = ";as=Table;v=v1;g=meta.k8s.io"
	AsPartial  = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	AsPartials = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// Message encodes and decodes bodies as client-go does.
type Message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

const magic = "k8s\x00"

// Wrap encodes a body with its type.
func Wrap(t testing.TB, apiVersion, kind string, m Message) string {
	t.Helper()
	raw, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	b, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return magic + string(b)
}

// Unwrap returns the type of a body and decodes it.
func Unwrap(t testing.TB, body []byte, m Message) runtime.TypeMeta {
	t.Helper()
	if len(body) < 4 || string(body[:4]) != magic {
		t.Fatalf("no protobuf envelope: %.40q", body)
	}
	var u runtime.Unknown
	if err := u.Unmarshal(body[4:]); err != nil {
		t.Fatal(err)
	}
	if err := m.Unmarshal(u.Raw); err != nil {
		t.Fatal(err)
	}
	return u.TypeMeta
}

// ProtoList is an event list of either view.
type ProtoList struct {
	kind  runtime.TypeMeta
	meta  metav1.ListMeta
	Names []string
}

// Decode decodes a body.
func (l *ProtoList) Decode(t testing.TB, body []byte) {
	t.Helper()
	var core corev1.EventList
	var events eventsv1.EventList
	*l = ProtoList{kind: Unwrap(t, body, &core)}
	l.meta = core.ListMeta
	if l.kind.APIVersion == "v1" {
		for i := range core.Items {
			l.Names = append(l.Names, core.Items[i].Name)
		}
		return
	}
	Unwrap(t, body, &events)
	for i := range events.Items {
		l.Names = append(l.Names, events.Items[i].Name)
	}
}
