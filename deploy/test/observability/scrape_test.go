package observability_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// sample is one value of a scrape.
type sample struct {
	value   float64
	counter bool // grows for as long as a fault lasts
}

// scrape is what /metrics shows at one moment, by series. A service that does not answer has only the series up.
type scrape struct {
	at      time.Time
	samples map[string]sample
	help    map[string]string // by the name of the metric, with its kind
}

// scraped reads the metrics as Prometheus does, with the labels that it adds.
func (s *svc) scraped(t *testing.T) scrape {
	t.Helper()
	out := scrape{time.Now(), map[string]sample{}, map[string]string{}}
	add := func(name string, labels map[string]string, value float64, counter bool) {
		pairs := []string{fmt.Sprintf("job=%q", s.name), `instance="a"`}
		for name, value := range labels {
			pairs = append(pairs, fmt.Sprintf("%s=%q", name, value))
		}
		out.samples[name+"{"+strings.Join(sorted(pairs), ",")+"}"] = sample{value, counter}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	resp, err := get(ctx, s.admin+"/metrics", "")
	if err != nil {
		add("up", nil, 0, false)
		return out
	}
	defer resp.Body.Close()
	add("up", nil, 1, false)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, family := range families {
		out.help[name] = strings.ToLower(family.GetType().String()) + ": " + family.GetHelp()
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			switch h := metric.GetHistogram(); {
			case h != nil:
				add(name+"_count", labels, float64(h.GetSampleCount()), true)
				add(name+"_sum", labels, h.GetSampleSum(), true)
				for _, bucket := range h.GetBucket() {
					labels["le"] = fmt.Sprint(bucket.GetUpperBound())
					add(name+"_bucket", labels, float64(bucket.GetCumulativeCount()), true)
				}
				labels["le"] = "+Inf"
				add(name+"_bucket", labels, float64(h.GetSampleCount()), true)
			case metric.Counter != nil:
				add(name, labels, metric.GetCounter().GetValue(), true)
			default:
				add(name, labels, metric.GetGauge().GetValue()+metric.GetUntyped().GetValue(), false)
			}
		}
	}
	return out
}

const (
	stepsBefore = 20  // scrapes of 15 s that show the service before the fault
	stepsDuring = 280 // and with the fault: an hour and ten minutes
)

// lasting returns the series that Prometheus would hold if the fault between two scrapes went on: counters grow by as
// much with every scrape, gauges stay. They are in the syntax of promqltest, whose time begins at 0.
func lasting(before, after scrape) string {
	shift := stepsBefore*15 - float64(after.at.UnixNano())/1e9
	var out strings.Builder
	for series, s := range after.samples {
		first, known := before.samples[series]
		fmt.Fprint(&out, "  ", series)
		switch name, _, _ := strings.Cut(series, "{"); {
		case s.counter:
			fmt.Fprintf(&out, " %g+0x%d %g+%gx%d\n", first.value, stepsBefore-1, s.value, s.value-first.value, stepsDuring)
		case strings.HasSuffix(name, "_timestamp_seconds") && s.value > 0: // 0 is no time
			fmt.Fprintf(&out, " %f+0x%d\n", s.value+shift, stepsBefore+stepsDuring)
		case known:
			fmt.Fprintf(&out, " %g+0x%d %g+0x%d\n", first.value, stepsBefore-1, s.value, stepsDuring)
		default:
			fmt.Fprintf(&out, " _x%d %g+0x%d\n", stepsBefore, s.value, stepsDuring)
		}
	}
	return out.String()
}

// earlier returns the scrape with a time so much earlier, as if as long had passed since.
func (s scrape) earlier(t *testing.T, name string, by time.Duration) scrape {
	t.Helper()
	found := false
	for series, at := range s.samples {
		if strings.HasPrefix(series, name+"{") && at.value > 0 {
			s.samples[series] = sample{at.value - by.Seconds(), at.counter}
			found = true
		}
	}
	if !found {
		t.Fatalf("there is no time in %s", name)
	}
	return s
}

// svc is a running service.
type svc struct {
	name, url, admin string
	dir              string // its data directory
	log              *testenv.Output
	cmd              *exec.Cmd
}

// start runs a service on free ports until the test ends. Settings are NAME=VALUE without the prefix of the service;
// a shell command may stand in front of it.
func start(t *testing.T, name, shell string, settings ...string) *svc {
	t.Helper()
	api, admin := porttest.Addr(t), porttest.Addr(t)
	s := &svc{name: name, url: "http://" + api, admin: "http://" + admin, dir: t.TempDir(), log: new(testenv.Output)}
	program := bin + "/" + name
	s.cmd = exec.Command("sh", "-c", strings.TrimSpace(shell+" exec "+program))
	prefix := strings.ToUpper(name) + "_"
	s.cmd.Env = append(os.Environ(), "DIR="+s.dir, prefix+"LISTEN_HTTP="+api, prefix+"LISTEN_ADMIN="+admin)
	if name == "eventsvc" {
		s.cmd.Env = append(s.cmd.Env, prefix+"DATA_DIR="+s.dir)
	}
	for _, setting := range settings {
		s.cmd.Env = append(s.cmd.Env, prefix+setting)
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, s.log)
		}
	})
	testenv.Eventually(t, name+" answers", deadline, func() error {
		resp, err := get(t.Context(), s.admin+"/livez", "")
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	return s
}

func (s *svc) ready(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, s.name+" is ready", deadline, func() error {
		resp, err := get(t.Context(), s.admin+"/readyz", "")
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}
