package attack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// Backdated creates events that say they came two billion times since a day of 1970 or of the year 1, each another day,
// and asks between them what changed, and how often things happened since then.
func Backdated(ctx context.Context, s *Source) (load.Spec, error) {
	e, err := s.Services.EventsOf(ctx, s.Client, s.Own)
	if err != nil {
		return load.Spec{}, err
	}
	ask := func(path string) []byte { return e.Request("GET", path, "", "") }
	questions := [][]byte{
		ask("/query/v1/changes"),
		ask("/query/v1/changes?window=1m&namespace=" + url.QueryEscape(s.Own)),
		ask("/query/v1/histogram?by=type&from=1970-01-01T00:00:00Z"),
	}
	return load.Spec{
		Addr: s.Services.API(), Conns: 16,
		Next: func(dst []byte, i int) []byte {
			if i%4 > 0 {
				return append(dst, questions[i%4-1]...)
			}
			first := time.Date([]int{1, 1970}[i/4%2], 1, 2, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i/4%20_000)
			body := fmt.Sprintf(`{"metadata":{"generateName":"old-"},"regarding":{"kind":"Pod","name":"a","namespace":%q},"eventTime":%q,"series":{"count":2147483647,"lastObservedTime":%q},`+
				`"reportingController":"a.example/b","reportingInstance":"c","action":"d","reason":"Old","type":"Warning"}`,
				s.Own, first.Format("2006-01-02T15:04:05.000000Z07:00"), time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
			return append(dst, e.Request("POST", e.Path(), "Content-Type: "+target.JSONType+"\r\n", body)...)
		},
		Keep:  func(int) bool { return false },
		Check: load.OneOf(http.StatusOK, http.StatusCreated, http.StatusTooManyRequests),
	}, nil
}
