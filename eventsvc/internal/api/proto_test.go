package api_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// protobuf encodes and decodes bodies as client-go does.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

const magic = "k8s\x00"

func wrap(t testing.TB, apiVersion, kind string, m message) string {
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

// unwrap returns the type of a body and decodes it.
func unwrap(t testing.TB, body []byte, m message) runtime.TypeMeta {
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

// protoList is an event list of either view.
type protoList struct {
	kind  runtime.TypeMeta
	meta  metav1.ListMeta
	names []string
}

func (l *protoList) decode(t testing.TB, body []byte) {
	t.Helper()
	var core corev1.EventList
	var events eventsv1.EventList
	*l = protoList{kind: unwrap(t, body, &core)}
	l.meta = core.ListMeta
	if l.kind.APIVersion == "v1" {
		for i := range core.Items {
			l.names = append(l.names, core.Items[i].Name)
		}
		return
	}
	unwrap(t, body, &events)
	for i := range events.Items {
		l.names = append(l.names, events.Items[i].Name)
	}
}
