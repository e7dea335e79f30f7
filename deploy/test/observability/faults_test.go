package observability_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// faults make a real service fail, each in the way that one alert is about. A fault returns what the service shows
// before it and after a scrape interval of it.
var faults = map[string]func(t *testing.T) (before, after scrape){
	"ServiceDown": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t)
		events.create(t, token, "first", http.StatusCreated)
		before = events.scraped(t)
		events.disk(t, "error=EIO")
		events.create(t, token, "second", http.StatusServiceUnavailable)
		_ = events.cmd.Wait()
		if code := events.cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(events.log.String(), "input/output error") {
			t.Errorf("exit code %d, want 4 and the error of the disk:\n%s", code, events.log)
		}
		return before, events.scraped(t)
	},
	"ServerErrors":             withoutIssuer,
	"SlowAnswers":              withHangingDatabase,
	"RegistrationsUnreachable": withHangingDatabase,
	"FilesRunOut": func(t *testing.T) (before, after scrape) {
		s := startTokens(t, "ulimit -n 64;") // who says nothing stays for ten seconds
		before = s.scraped(t)
		for range 48 {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
		}
		return before, s.scrapedOnce(t, "the connections are accepted", func(now scrape) bool {
			return now.sum("process_open_fds") > before.sum("process_open_fds")+44
		})
	},
	"ClusterBehind": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t)
		events.mirroredUntil(t, token, "east", time.Now())
		before = events.scraped(t)
		events.mirroredUntil(t, token, "east", time.Now().Add(-time.Hour)) // as it is when nothing comes for an hour
		return before, events.scrapedOnce(t, "the cluster is behind", func(now scrape) bool { return now.sum("eventsvc_cluster_complete_seconds") > 3000 })
	},
	"ClusterSilent": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t)
		events.createIn(t, token, "east")
		before = events.scraped(t)
		return before, events.scraped(t).earlier(t, "eventsvc_cluster_last_event_timestamp_seconds", 3*time.Hour)
	},
	"BackupOld": func(t *testing.T) (before, after scrape) {
		_, events, _ := startBoth(t)
		backup := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), "backup", filepath.Join(t.TempDir(), "events.tar"),
			"--data-dir="+events.dir, "--listen-admin="+strings.TrimPrefix(events.admin, "http://"))
		if out, err := backup.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		before = events.scraped(t)
		return before, events.scraped(t).earlier(t, "store_last_backup_timestamp_seconds", 3*24*time.Hour)
	},
	"KeySetStale": func(t *testing.T) (before, after scrape) {
		tokens, events, _ := startBoth(t)
		before = events.scraped(t)
		if err := tokens.cmd.Process.Kill(); err != nil { // and it does not come back
			t.Fatal(err)
		}
		return before, events.scraped(t)
	},
	"TokensRefused": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t)
		before = events.scraped(t)
		for range 10 {
			events.send(t, "GET", eventsPath, token[:len(token)-8]+"AAAAAAAA", "", http.StatusUnauthorized)
		}
		return before, events.scraped(t)
	},
	"PolicyFileBad":  badFile("POLICY_FILE", "bindings: []\n", "bindings: nonsense\n", "eventsvc_policy_file_good"),
	"RulesFileBad":   badFile("RULES_FILE", "[]\n", "[{name: a}]\n", "eventsvc_rules_file_good"),
	"IssuersFileBad": badFile("ISSUERS_FILE", "[]\n", "issuers: []\n", "issuers_file_good"),
	"CertificateBad": func(t *testing.T) (before, after scrape) {
		dir, https := t.TempDir(), porttest.Addr(t)
		selfSigned(t, dir)
		_, events, _ := startBoth(t, "LISTEN_HTTPS="+https, "TLS_CERT_FILE="+dir+"/tls.crt", "TLS_KEY_FILE="+dir+"/tls.key")
		before = events.scraped(t)
		write(t, dir+"/tls.crt", "half a certificate\n")
		return before, events.scrapedOnce(t, "the files are looked at", func(now scrape) bool { return now.sum("certificate_file_good") == 0 })
	},
	"WatchesNearLimit": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t, "MAX_WATCHES=1")
		before = events.scraped(t)
		events.watch(t, token)
		return before, events.scraped(t)
	},
	"RequestsRefused": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t, "MAX_WATCHES=4")
		events.watch(t, token)
		events.send(t, "GET", eventsPath+"?watch=true", token, "", http.StatusTooManyRequests)
		before = events.scraped(t)
		for range 5 {
			events.send(t, "GET", eventsPath+"?watch=true", token, "", http.StatusTooManyRequests)
		}
		return before, events.scraped(t)
	},
	"SecretsGuessed": func(t *testing.T) (before, after scrape) {
		s := startTokens(t, "")
		guess := func(i int) {
			form := fmt.Sprintf("grant_type=client_credentials&client_id=guess-%d&client_secret=x", i)
			s.send(t, "POST", "/oauth2/token", "", form, http.StatusUnauthorized)
		}
		guess(0)
		before = s.scraped(t)
		for i := range 20 {
			guess(i)
		}
		return before, s.scraped(t)
	},
	"WatchersBehind": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t)
		before = events.scraped(t)
		events.watchWithoutReading(t, token)
		events.createMany(t, token, 9000)
		return before, events.scraped(t)
	},
	"StoreFull":      func(t *testing.T) (before, after scrape) { return onSmallDisk(t, "50m") },
	"DiskNearlyFull": func(t *testing.T) (before, after scrape) { return onSmallDisk(t, "200m") },
	"SlowCommits": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t)
		events.create(t, token, "first", http.StatusCreated)
		before = events.scraped(t)
		events.disk(t, "delay_exit=500000") // microseconds
		events.create(t, token, "second", http.StatusCreated)
		return before, events.scraped(t)
	},
	"RetentionLate": func(t *testing.T) (before, after scrape) {
		events, before := withDamagedRecord(t)
		return before, events.scrapedOnce(t, "it is late", func(now scrape) bool { return now.sum("store_retention_lag_seconds") > 61 })
	},
	"RetentionCutShort": func(t *testing.T) (before, after scrape) {
		_, events, token := startBoth(t, "MAX_BYTES=64MiB", "COMPRESS_AFTER=off")
		before = events.scraped(t)
		events.createMany(t, token, 9000)
		return before, events.scrapedOnce(t, "an age is projected", func(now scrape) bool { return now.sum("store_projected_age_seconds") > 0 })
	},
	"MaintenanceFails": func(t *testing.T) (before, after scrape) {
		events, before := withDamagedRecord(t)
		return before, events.scrapedOnce(t, "it fails", func(now scrape) bool { return now.sum("store_maintenance_failures_total") > 0 })
	},
	"DamagedData": func(t *testing.T) (before, after scrape) {
		events, before := withDamagedRecord(t)
		return before, events.scraped(t)
	},
	"AuditEntriesLost": func(t *testing.T) (before, after scrape) {
		events, token := withFullAuditFile(t)
		before = events.scraped(t)
		events.createMany(t, token, 9000) // more than wait for the file
		return before, events.scrapedOnce(t, "entries are dropped", func(now scrape) bool {
			return now.sum(`eventsvc_audit_entries_total{instance="a",job="eventsvc",result="dropped"}`) > 0
		})
	},
	"AuditLogFailing": func(t *testing.T) (before, after scrape) {
		events, token := withFullAuditFile(t)
		before = events.scraped(t)
		events.create(t, token, "", http.StatusCreated)
		return before, events.scrapedOnce(t, "it fails", func(now scrape) bool { return now.sum("eventsvc_audit_failing{") == 1 })
	},
}

// mirrorFaults are those of the mirror and of the two servers between which it stands.
var mirrorFaults = map[string]func(t *testing.T) (before, after scrape){
	"MirrorBehind": func(t *testing.T) (before, after scrape) {
		tokens, source, _ := startBoth(t)
		target := startTarget(t, tokens)
		mirror := startMirror(t, tokens, source.url, target)
		before = mirror.scraped(t)
		if err := target.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		source.create(t, tokens.token(t), "", http.StatusCreated)
		return before, mirror.scrapedOnce(t, "it is behind", func(now scrape) bool { return now.sum("eventsvc_mirror_lag_seconds") > 61 })
	},
	"MirrorGap": func(t *testing.T) (before, after scrape) {
		tokens, source, token := startBoth(t)
		for range 20 {
			source.create(t, token, "", http.StatusCreated)
		}
		mirror := startMirror(t, tokens, source.url, startTarget(t, tokens))
		before = mirror.scraped(t)
		startsOver(t, tokens, source, token)
		return before, mirror.scrapedOnce(t, "it has found a gap", func(now scrape) bool {
			return now.sum("eventsvc_mirror_gaps_total") > 0
		})
	},
	"AlertsBehind": func(t *testing.T) (before, after scrape) {
		tokens, events, _ := startBoth(t)
		alerts := startAlerts(t, tokens, events, "http://"+porttest.Addr(t))
		before = alerts.scraped(t)
		if err := events.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		return before, alerts.scrapedOnce(t, "it is behind", func(now scrape) bool { return now.sum("eventsvc_alerts_lag_seconds") > 61 })
	},
	"AlertsUndelivered": func(t *testing.T) (before, after scrape) {
		tokens, events, token := startBoth(t)
		alerts := startAlerts(t, tokens, events, "http://"+porttest.Addr(t)) // where nobody is
		before = alerts.scraped(t)
		events.create(t, token, "", http.StatusCreated)
		return before, alerts.scrapedOnce(t, "an alert waits", func(now scrape) bool { return now.sum("eventsvc_alerts_waiting_seconds") > 61 })
	},
	"AlertsLost": func(t *testing.T) (before, after scrape) {
		tokens, events, token := startBoth(t)
		for range 20 {
			events.create(t, token, "", http.StatusCreated)
		}
		alerts := startAlerts(t, tokens, events, "http://"+porttest.Addr(t))
		before = alerts.scraped(t)
		startsOver(t, tokens, events, token)
		return before, alerts.scrapedOnce(t, "it knows of the loss", func(now scrape) bool { return now.sum("eventsvc_alerts_gaps_total") > 0 })
	},
	"MirrorRefused": func(t *testing.T) (before, after scrape) {
		tokens, source, token := startBoth(t)
		mirror := startMirror(t, tokens, source.url, startTarget(t, tokens, "NAMESPACES=declared"))
		before = mirror.scraped(t)
		inShop := strings.NewReplacer("/default/", "/shop/", `"default"`, `"shop"`)
		source.send(t, "POST", inShop.Replace(eventsPath), token, inShop.Replace(eventBody("", note)), http.StatusCreated)
		return before, mirror.scrapedOnce(t, "an event is refused", func(now scrape) bool {
			return now.sum(`eventsvc_mirror_events_total{instance="a",job="eventsvc-mirror",namespace="*",result="refused"}`) > 0
		})
	},
}

// startsOver has a service begin again with one event, as if its data was lost.
func startsOver(t *testing.T, tokens, s *svc, token string) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	again := start(t, "eventsvc", "", "ISSUER="+tokens.url, "LISTEN_HTTP="+strings.TrimPrefix(s.url, "http://"))
	again.url = s.url
	again.ready(t)
	again.create(t, token, "", http.StatusCreated)
}

// aggregateFaults causes each fault of eventsvc aggregate, and of the servers that it asks, by the name of its alert.
var aggregateFaults = map[string]func(t *testing.T) (before, after scrape){
	"AggregateDown": func(t *testing.T) (before, after scrape) {
		aggregate, _ := startHistory(t)
		before = aggregate.scraped(t)
		if err := aggregate.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = aggregate.cmd.Wait()
		return before, aggregate.scraped(t)
	},
	"AggregateReviewsFail": func(t *testing.T) (before, after scrape) {
		aggregate, _ := startHistory(t)
		before = aggregate.scraped(t)
		aggregate.reviews.Store(http.StatusForbidden)
		aggregate.refuses(t, "berta")
		return before, aggregate.scraped(t)
	},
	"AggregateServerAway": func(t *testing.T) (before, after scrape) {
		aggregate, events := startHistory(t)
		before = aggregate.scraped(t)
		if err := events.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = events.cmd.Wait()
		aggregate.refuses(t, "anna")
		return before, aggregate.scraped(t)
	},
}

// startHistory starts eventsvc aggregate and its event server.
func startHistory(t *testing.T) (aggregate *aggregated, events *svc) {
	tokens := startTokens(t, "")
	events = startTarget(t, tokens, "GROUP_DOMAIN=tidings.example")
	return startAggregate(t, events, tokens.token(t)), events
}

// refuses asks as somebody, who is told that something is unavailable.
func (a *aggregated) refuses(t *testing.T, user string) {
	t.Helper()
	if code, err := a.ask(t, user); code != http.StatusServiceUnavailable {
		t.Errorf("%d %v", code, err)
	}
}

// TestFaults makes a real service fail in the way of each alert, and evaluates the alerts on what it shows.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, rule := range alertRules(t) {
		fault, ok := faults[rule.Alert]
		if !ok {
			fault, ok = mirrorFaults[rule.Alert]
		}
		if !ok {
			fault, ok = aggregateFaults[rule.Alert]
		}
		if !ok {
			fault, ok = databaseFaults[rule.Alert]
		}
		if !ok {
			t.Errorf("%s has no fault here", rule.Alert)
			continue
		}
		t.Run(rule.Alert, func(t *testing.T) {
			t.Parallel()
			before, after := fault(t)
			if !fires(t, rule, lasting(before, after)) {
				t.Error("does not fire")
			}
		})
	}
}

// TestNoFault: a healthy service fires no alert.
func TestNoFault(t *testing.T) {
	t.Parallel()
	tokens, events, token := startBoth(t)
	slow := false // this machine
	timed := func(work func()) {
		begin := time.Now()
		work()
		slow = slow || time.Since(begin) > 150*time.Millisecond
	}
	work := func() {
		for range 20 {
			timed(func() { events.create(t, token, "", http.StatusCreated) })
			timed(func() { events.send(t, "GET", eventsPath+"?limit=1", token, "", http.StatusOK) })
		}
		timed(func() { tokens.token(t) })
	}
	work()
	for range 20 {
		slow = false
		beforeEvents, beforeTokens := events.scraped(t), tokens.scraped(t)
		work()
		series := lasting(beforeEvents, events.scraped(t)) + lasting(beforeTokens, tokens.scraped(t))
		late := false
		for _, rule := range alertRules(t) {
			switch {
			case rule.Alert == "KeySetStale": // keys are fetched every few minutes, which an hour made of two scrapes does not show
			case !fires(t, rule, series):
			case slow && (rule.Alert == "SlowAnswers" || rule.Alert == "SlowCommits"):
				late = true // and rightly so
			default:
				t.Errorf("%s fires", rule.Alert)
			}
		}
		if !late {
			return
		}
	}
	t.Log("this machine is too slow to tell whether the alerts about that are silent when it is not")
}

// withoutIssuer asks an eventsvc that has never reached its issuer.
func withoutIssuer(t *testing.T) (before, after scrape) {
	tokens := startTokens(t, "")
	token := tokens.token(t)
	events := start(t, "eventsvc", "", "ISSUER="+tokens.url, "JWKS_URL=http://127.0.0.1:1/")
	before = events.scraped(t)
	for range 10 {
		events.send(t, "GET", eventsPath, token, "", http.StatusServiceUnavailable)
	}
	return before, events.scraped(t)
}

// withHangingDatabase asks a tokensvc whose database accepts connections and says nothing.
func withHangingDatabase(t *testing.T) (before, after scrape) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := start(t, "tokensvc", "", "DATABASE_DSN=postgres://nobody@"+l.Addr().String()+"/none", "DATABASE_TIMEOUT=1s")
	before = s.scraped(t)
	for range 3 {
		s.send(t, "POST", "/oauth2/token", "", tokenForm, http.StatusServiceUnavailable)
	}
	return before, s.scraped(t)
}

// withFullAuditFile runs an eventsvc whose audit file cannot be written, as on
// a full disk.
func withFullAuditFile(t *testing.T) (events *svc, token string) {
	_, events, token = startBoth(t, "AUDIT=metadata", "AUDIT_FILE=/dev/full")
	return events, token
}

// withDamagedRecord flips a byte in an event of a running service, and asks for that event.
func withDamagedRecord(t *testing.T) (events *svc, before scrape) {
	_, events, token := startBoth(t)
	events.create(t, token, "victim", http.StatusCreated)
	before = events.scraped(t)
	events.damage(t)
	events.send(t, "GET", eventsPath+"/victim", token, "", http.StatusInternalServerError)
	return events, before
}

// onSmallDisk runs an eventsvc on a disk that is nearly full from the start, in a mount namespace of its own.
func onSmallDisk(t *testing.T, size string) (before, after scrape) {
	mount := func(dir string) string {
		return "mount -t tmpfs -o size=" + size + " none " + dir
	}
	if out, err := exec.Command("unshare", "--mount", "--map-root-user", "sh", "-c", mount(t.TempDir())).CombinedOutput(); err != nil {
		testenv.Unable(t, "this machine lets nobody mount: %v %s", err, out)
	}
	events := start(t, "eventsvc", "exec unshare --mount --map-root-user sh -c '"+mount(`"$DIR"`)+" && exec "+bin+"/eventsvc';", "ISSUER=http://127.0.0.1:1")
	now := events.scraped(t)
	return now, now
}

// disk makes every sync fail, or take long, until it is mended.
func (s *svc) disk(t *testing.T, fault string) (mend func()) {
	t.Helper()
	path := testenv.Tool(t, "strace")
	var said testenv.Output
	cmd := exec.Command(path, "-f", "-e", "trace=fdatasync", "-e", "inject=fdatasync:"+fault, "-p", strconv.Itoa(s.cmd.Process.Pid))
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	mend = sync.OnceFunc(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	t.Cleanup(mend)
	testenv.Eventually(t, "strace is attached", deadline, func() error {
		if !strings.Contains(said.String(), "attached") {
			return errors.New(said.String())
		}
		return nil
	})
	return mend
}

// damage flips a byte of the only event in the log file, which the running service has mapped. A backup before that
// makes the service copy the event from the write-ahead log into the log file.
func (s *svc) damage(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(bin+"/eventsvc", "backup", t.TempDir()+"/backup.tar", "--data-dir", s.dir, "--listen-admin", strings.TrimPrefix(s.admin, "http://")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(s.dir + "/store/*.db")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		content, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(content, []byte(note)); i > 0 {
			if _, err := f.WriteAt([]byte{content[i] ^ 1}, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// badFile gives a setting of eventsvc a good file, and then a mistake to that file, which a gauge shows.
func badFile(setting, good, bad, gauge string) func(*testing.T) (before, after scrape) {
	return func(t *testing.T) (before, after scrape) {
		file := filepath.Join(t.TempDir(), "file.yaml")
		write(t, file, good)
		_, events, _ := startBoth(t, setting+"="+file)
		before = events.scraped(t)
		write(t, file, bad)
		return before, events.scrapedOnce(t, "the file is read again", func(now scrape) bool { return now.sum(gauge) == 0 })
	}
}
