package observability_test

import (
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/shared/pgtest"
)

// startOnDatabase starts an eventsvc on a PostgreSQL database of its own, and returns its DSN.
func startOnDatabase(t *testing.T, tokens *svc) (events *svc, dsn string) {
	t.Helper()
	dsn = pgtest.Start(t).Database(t)
	return startOn(t, tokens, dsn), dsn
}

// startOn starts an eventsvc on a PostgreSQL database.
func startOn(t *testing.T, tokens *svc, dsn string) (events *svc) {
	t.Helper()
	if out, err := exec.Command(filepath.Join(bin, "eventsvc"), "database", "migrate", "--store-dsn", dsn).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	events = start(t, "eventsvc", "", "STORE_DSN="+dsn, "ISSUER="+tokens.url)
	events.ready(t)
	return events
}

// only returns the series whose text begins so.
func (s scrape) only(prefix string) scrape {
	s.samples = maps.Clone(s.samples)
	for series := range s.samples {
		if !strings.HasPrefix(series, prefix) {
			delete(s.samples, series)
		}
	}
	return s
}

// databaseFaults are those of an eventsvc on PostgreSQL and of its database.
var databaseFaults = map[string]func(t *testing.T) (before, after scrape){
	"DatabaseAway": func(t *testing.T) (before, after scrape) {
		events, dsn := startOnDatabase(t, startTokens(t, ""))
		before = events.scraped(t)
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		name := u.Path[1:]
		u.Path = "/postgres"
		pgtest.Exec(t, u.String(), "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
		pgtest.Exec(t, u.String(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
		return before, events.scrapedOnce(t, "the database is away", func(now scrape) bool { return now.sum("store_database_up") == 0 })
	},
	"DatabaseLostCommits": func(t *testing.T) (before, after scrape) {
		tokens := startTokens(t, "")
		events, dsn := startOnDatabase(t, tokens)
		events.create(t, tokens.token(t), "", 201)
		before = events.scraped(t)
		// What a server has that is promoted without the last commit.
		pgtest.Exec(t, dsn, `SET search_path = eventsvc; BEGIN; DELETE FROM objects; DELETE FROM log; UPDATE head SET revision = 1; COMMIT;
			SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		after = events.scrapedOnce(t, "the loss is found", func(now scrape) bool { return now.sum("store_database_lost_commits_total") > 0 })
		// The copy is a new one, whose counters begin at 0.
		return before.only("store_database_"), after.only("store_database_")
	},
	"DatabaseSlow": func(t *testing.T) (before, after scrape) {
		tokens := startTokens(t, "")
		events, dsn := startOnDatabase(t, tokens)
		token := tokens.token(t)
		before = events.scraped(t)
		held := make(chan struct{})
		go func() {
			defer close(held)
			pgtest.Exec(t, dsn, "BEGIN; LOCK TABLE eventsvc.head; SELECT pg_sleep(2); COMMIT")
		}()
		after = events.scrapedOnce(t, "the database is slow", func(now scrape) bool {
			events.send(t, "GET", eventsPath+"?limit=1", token, "", http.StatusOK)
			return now.sum("store_database_head_seconds_sum") > before.sum("store_database_head_seconds_sum")+0.5
		})
		<-held
		return before, after
	},
	"CopyBehind": func(t *testing.T) (before, after scrape) {
		tokens := startTokens(t, "")
		events, dsn := startOnDatabase(t, tokens)
		before = events.scraped(t)
		events.disk(t, "delay_exit=3600000000") // microseconds
		other := start(t, "eventsvc", "", "STORE_DSN="+dsn, "ISSUER="+tokens.url)
		other.ready(t)
		other.create(t, tokens.token(t), "", http.StatusCreated)
		return before, events.scrapedOnce(t, "the copy is behind", func(now scrape) bool { return now.sum("store_copy_lag_seconds") > 31 })
	},
	"StandbyAway": func(t *testing.T) (before, after scrape) {
		pair := pgtest.StartPair(t)
		events := startOn(t, startTokens(t, ""), pair.DSN)
		before = events.scraped(t)
		pair.Detach(t)
		return before, events.scrapedOnce(t, "the standby is away", func(now scrape) bool { return now.sum("store_database_standbys_missing") > 0 })
	},
	"NoSynchronousStandby": func(t *testing.T) (before, after scrape) {
		events, _ := startOnDatabase(t, startTokens(t, "")) // whose server has none
		before = events.scraped(t)
		return before, events.scraped(t)
	},
}
