package target

import (
	"context"
	"fmt"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
)

// The events of FillVaried are spread evenly over so many namespaces, and over so many
// reasons within each. One in VariedWarnings is a warning.
const (
	VariedNamespaces = 200
	VariedReasons    = 52
	VariedWarnings   = 10
)

// VariedNamespace is the name of a namespace of FillVaried.
func VariedNamespace(i int) string { return fmt.Sprintf("varied-%03d", i) }

// VariedReason is a reason of FillVaried.
func VariedReason(i int) string { return fmt.Sprintf("Reason%02d", i) }

// variedPart is how many events are created with one token.
const variedPart = 500_000

// FillVaried creates n events in many namespaces.
func (s *Services) FillVaried(ctx context.Context, n int) error {
	for at := 0; at < n; at += variedPart {
		token, err := s.FetchToken(ctx, 0)
		if err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		forms := variedForms{host: s.EventsAddr.String(), token: token, known: map[variety]*Form{}}
		spec := load.Spec{Addr: s.API(), Secure: s.TLS, Conns: 256, Limit: min(variedPart, n-at), Check: load.Status(201),
			Next: func(dst []byte, i int) []byte { return forms.of(at+i).Fill(dst, at+i) }}
		if err := load.Do(spec, time.Duration(spec.Limit)*time.Millisecond+30*time.Second); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}

// variety is what tells a form of FillVaried from others.
type variety struct {
	namespace, reason int
	warning           bool
}

// variedForms makes each form when it is first needed.
type variedForms struct {
	host, token string
	known       map[variety]*Form
}

// of returns the form of event i.
func (f *variedForms) of(i int) *Form {
	in := i / VariedNamespaces
	v := variety{i % VariedNamespaces, in % VariedReasons, in%VariedWarnings == 0}
	form := f.known[v]
	if form == nil {
		kind := "Normal"
		if v.warning {
			kind = "Warning"
		}
		namespace := VariedNamespace(v.namespace)
		e := NewEvents(f.host, f.token, namespace)
		made := NewForm(e.Request("POST", e.Path(), "Content-Type: "+JSONType+"\r\n", eventBody(namespace, VariedReason(v.reason), kind, time.Now())))
		form = &made
		f.known[v] = form
	}
	return form
}
