package attack

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// The clients of Questions, and the events that they ask about: each is the only one of its reason, node and reporter.
const (
	questionClients = 4
	questionEvents  = 9_200
)

// Questions asks for the largest answers of every kind of question, in both forms: as many rows and columns as there
// may be.
func Questions(ctx context.Context, s *Source) (load.Spec, error) {
	var asked [][]byte
	for i := range questionClients {
		e, err := s.Services.EventsOf(ctx, s.Client+i, s.Own)
		if err != nil {
			return load.Spec{}, err
		}
		if i == 0 {
			if err := vary(ctx, s, e); err != nil {
				return load.Spec{}, err
			}
		}
		in := url.QueryEscape(s.Own)
		for _, path := range []string{
			"/query/v1/histogram?by=reason,node,reporter&step=1s&from=-3h&namespace=" + in,
			"/query/v1/histogram?by=reason,node,reporter&step=1s&from=-3h&search=hello&namespace=" + in,
			"/query/v1/facets?limit=1000&from=-3h&namespace=" + in,
			"/query/v1/groups?by=object,reason,node,reporter&limit=1000&from=-3h&namespace=" + in,
			"/query/v1/events?limit=1000&from=-3h&namespace=" + in,
			"/query/v1/changes?window=1h&limit=100&namespace=" + in,
			"/loki/api/v1/series?match[]=" + url.QueryEscape(`{namespace="`+s.Own+`"}`),
			"/loki/api/v1/query_range?limit=5000&query=" + url.QueryEscape(`{namespace="`+s.Own+`"} | json`),
			"/loki/api/v1/query_range?step=1&query=" + url.QueryEscape(`sum by (node) (count_over_time({namespace="`+s.Own+`"}[1m]))`),
			"/loki/api/v1/detected_fields?line_limit=5000&query=" + url.QueryEscape(`{namespace="`+s.Own+`"}`),
		} {
			asked = append(asked, e.Request("GET", path, "Accept: application/json\r\n", ""), e.Request("GET", path, "Accept: text/csv, application/json;q=0.5\r\n", ""))
		}
	}
	return load.Spec{
		Addr: s.Services.API(), Conns: 64,
		Next:  func(dst []byte, i int) []byte { return append(dst, asked[i*7%len(asked)]...) },
		Keep:  func(int) bool { return false },
		Check: load.OneOf(http.StatusOK, http.StatusBadRequest, http.StatusTooManyRequests, http.StatusGatewayTimeout),
	}, nil
}

// vary creates the events that Questions asks about, a thousand in a request.
func vary(ctx context.Context, s *Source, e *target.Events) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Services.API().String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	answers, at := bufio.NewReader(conn), time.Now().UTC()
	for first := 0; first < questionEvents; first += 1000 {
		var lines bytes.Buffer
		for i := first; i < min(first+1000, questionEvents); i++ {
			fmt.Fprintf(&lines, `{"metadata":{"name":"varied-%d","namespace":%q},"regarding":{"kind":"Pod","name":"p%d","namespace":%q},"eventTime":%q,"deprecatedSource":{"component":"reporter-%d","host":"node-%d"},`+
				`"reportingController":"a.example/%d","reportingInstance":"node-%d","action":"d","reason":"Reason%d","note":"hello","type":"Warning"}`+"\n",
				i, s.Own, i, s.Own, at.Add(-time.Duration(i)*time.Second).Format("2006-01-02T15:04:05.000000Z07:00"), i, i, i, i, i)
		}
		if _, err := conn.Write(e.Request("POST", "/bulk/v1/events", "Content-Type: application/x-ndjson\r\n", lines.String())); err != nil {
			return err
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err
		}
		var said bytes.Buffer
		_, err = said.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("bulk: %s, %.200s: %w", resp.Status, said.String(), err)
		}
	}
	return nil
}
