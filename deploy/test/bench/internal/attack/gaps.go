package attack

import (
	"context"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// ForgedGaps is how many events ForgeGaps creates.
const ForgedGaps = 40_000

// ForgeGaps creates events in the attacker's own namespace that say that nobody watched a cluster
// for the last twelve hours.
func ForgeGaps(ctx context.Context, s *Source) error {
	e, err := s.Services.EventsOf(ctx, s.Client, s.Own)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	body := `{"metadata":{"name":"` + load.NamePrefix + target.NumberHole + `","labels":{"tidings.example/cluster":"prod"},"annotations":{` +
		`"mirror.tidings.example/gap-from":"` + now.Add(-12*time.Hour).Format(time.RFC3339) + `","mirror.tidings.example/gap-to":"` + now.Format(time.RFC3339) + `"}},` +
		`"eventTime":"` + now.Format("2006-01-02T15:04:05.000000Z07:00") + `","reportingController":"tidings.example/mirror","reportingInstance":"m",` +
		`"action":"Mirror","reason":"MirrorGap","type":"Warning","note":"nobody watched","regarding":{"kind":"Cluster","name":"prod","namespace":"` + s.Own + `"}}`
	form := target.NewForm(e.Request("POST", e.Path(), "Content-Type: "+target.JSONType+"\r\n", body))
	return load.Do(load.Spec{Addr: s.Services.API(), Conns: 64, Next: form.Fill, Limit: ForgedGaps, Check: load.Status(201)}, 2*time.Minute)
}
