package workload

import (
	"bytes"
	"fmt"
	"net/url"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// Questions asks one question again and again, and expects whole answers that have some texts. It sets size to that of
// the last.
func Questions(s *target.Services, e *target.Events, path string, expect []string, size *int) load.Spec {
	return Repeated(s, e.GetPath(nil, path), expect, size)
}

// Overview asks the tool of that name for agents, which counts all events of a range.
func Overview(s *target.Services, e *target.Events, from, to time.Time, size *int) load.Spec {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"events_overview","arguments":{"from":%q,"to":%q}}}`,
		from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	return Repeated(s, e.Request("POST", "/mcp", "Content-Type: "+target.JSONType+"\r\n", body), []string{"; complete", "reason: "}, size)
}

// Repeated sends one request again and again, as [Questions] does.
func Repeated(s *target.Services, request []byte, expect []string, size *int) load.Spec {
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: 1,
		Next: func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: func(i int, a *load.Answer) error {
			if err := load.Status(200)(i, a); err != nil {
				return err
			}
			*size = a.Size
			for _, text := range expect {
				if !bytes.Contains(a.Body, []byte(text)) {
					return fmt.Errorf("no %s in the answer: %.300s", text, a.Body)
				}
			}
			if bytes.Contains(a.Body, []byte(`"partial":true`)) {
				return fmt.Errorf("a partial answer: %.300s", a.Body)
			}
			return nil
		},
	}
}

// Range returns the parameters of a range of time, with their names.
func Range(fromName string, from time.Time, toName string, to time.Time) string {
	text := func(t time.Time) string { return url.QueryEscape(t.UTC().Format(time.RFC3339)) }
	return "&" + fromName + "=" + text(from) + "&" + toName + "=" + text(to)
}
