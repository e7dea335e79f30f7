package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"tidings.example/deploy/test/bench/internal/attack"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// gapStage has the rows of a client that asks what happened: after 40,000 ordinary events, and after another client,
// which may create in one namespace only, has reported 40,000 gaps. The question is about another namespace, and no gap
// is to be believed.
func gapStage() stage {
	var began time.Time
	ask := func(b *bench) (*result, error) { return askFacets(b, began) }
	return stage{
		name: "questions after forged gaps",
		open: func(b *bench) error {
			policy := filepath.Join(b.tmp, "policy.yaml")
			text := "roles:\n  - {name: forger, rules: [{verbs: [create], namespaces: [" + forged + "]}]}\n" +
				"bindings:\n  - {role: 'events:admin', subjects: [{clientID: " + target.ClientID(0) + "}]}\n" +
				"  - {role: forger, subjects: [{clientID: " + target.ClientID(goodClients) + "}]}\n"
			if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
				return err
			}
			began = time.Now()
			// As many ordinary events as there will be gaps: the store works on for a while after either.
			return errors.Join(b.start(target.Options{Events: []string{"--policy-file=" + policy}}),
				b.up.Fill(b.ctx, tenThousand, 0, 10_000), b.up.Fill(b.ctx, "ordinary", 0, attack.ForgedGaps))
		},
		rows: []row{
			{name: "attack/gaps/none", run: ask},
			{name: "attack/gaps", once: true, goal: p99Of(2, "attack/gaps/none"), beside: times("attack/gaps/none"), run: func(b *bench) (*result, error) {
				if err := attack.ForgeGaps(b.ctx, &attack.Source{Services: b.up, Client: goodClients, Own: forged}); err != nil {
					return nil, err
				}
				return ask(b)
			}},
		},
	}
}

// forged is the namespace with the forged gaps.
const forged = "forged"

// askFacets is a row of one question about a namespace since a time. Its answer has no gaps.
func askFacets(b *bench, since time.Time) (*result, error) {
	e, err := b.up.EventsOf(b.ctx, 0, tenThousand)
	if err != nil {
		return nil, err
	}
	var size int
	path := "/query/v1/facets?namespace=" + tenThousand + workload.Range("from", since, "to", time.Now().Add(time.Hour))
	return b.load(b.eventsvc(), "answers/s", workload.Questions(b.up, e, path, []string{`"total":10000`, `"gaps":[]`}, &size))
}
