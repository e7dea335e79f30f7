package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"

	"tidings.example/deploy/test/internal/incidents"
)

// BenchmarkOpen measures from the request for the page to its first paint, and from the sign-in until the overview of a
// week of 1,000,000 events is drawn and answers.
func BenchmarkOpen(b *testing.B) {
	s := recorded(b, 1_000_000)
	var paint, interactive float64
	n := 0
	for b.Loop() {
		t := openTab(b, s)
		t.open("/console/#/overview?from=-8d")
		t.wait(`document.querySelector("dialog.signin[open]")`)
		t.wait(`performance.getEntriesByName("first-contentful-paint").length`)
		paint += evaluate[float64](t, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		// From the answer with the token until nothing on the overview is on its way.
		evaluate[bool](t, `(globalThis.signed = new Promise((drawn) => new MutationObserver(function () {
			if (document.querySelector("dialog")) return;
			globalThis.began ??= performance.now();
			if (document.querySelector(".histogram svg") && document.querySelector(".facet") && !document.querySelector("main .loading")) drawn(performance.now() - globalThis.began);
		}).observe(document.body, { childList: true, subtree: true, attributes: true })), true)`)
		t.fill("dialog.signin input[name=id]", admin)
		t.fill("dialog.signin input[name=secret]", clientSecret)
		t.key("Enter")
		interactive += evaluate[float64](t, `globalThis.signed`)
		n++
	}
	b.ReportMetric(paint/float64(n), "ms-to-paint")
	b.ReportMetric(interactive/float64(n), "ms-to-use")
}

// BenchmarkLive measures the frames of the live view at 500 events a second, with 100,000 rows in range, for ten
// seconds.
func BenchmarkLive(b *testing.B) {
	s := recorded(b, 100_000)
	t := openTab(b, s)
	t.open("/console/#/live?from=-8d")
	t.signIn(admin)
	t.waitText(".phase", "Live")
	for b.Loop() {
		evaluate[bool](t, `(globalThis.frames = [], (function frame(at) { frames.push(at); requestAnimationFrame(frame); })(performance.now()), true)`)
		s.stream(b, 500, 10*time.Second)
		t.wait(`Number(document.querySelector(".bar-line .count").textContent.replace(/[^0-9]/g, "")) > 0`)
		report(b, t)
	}
}

// BenchmarkHour measures the frames and the memory of the live view after as many events as 20 a second make in an
// hour, sent as fast as they are taken.
func BenchmarkHour(b *testing.B) {
	s := recorded(b, 20_000)
	t := openTab(b, s)
	t.open("/console/#/live")
	t.signIn(admin)
	t.waitText(".phase", "Live")
	for b.Loop() {
		s.stream(b, 0, 0)
		t.waitText(".bar-line .count", "72k arrived")
		evaluate[bool](t, `(globalThis.frames = [], (function frame(at) { frames.push(at); requestAnimationFrame(frame); })(performance.now()), true)`)
		s.stream(b, 500, 5*time.Second)
		report(b, t)
	}
}

// report reports the frames since they were last begun, and the memory of the page.
func report(b *testing.B, t *tab) {
	b.Helper()
	b.ReportMetric(evaluate[float64](t, quantile(0.5)), "ms/frame-p50")
	b.ReportMetric(evaluate[float64](t, quantile(0.95)), "ms/frame-p95")
	b.ReportMetric(evaluate[float64](t, quantile(0.99)), "ms/frame-p99")
	b.ReportMetric(evaluate[float64](t, `performance.memory.usedJSHeapSize / 1048576`), "MiB")
}

func quantile(q float64) string {
	return fmt.Sprintf(`(() => { const d = frames.slice(1).map((at, i) => at - frames[i]).sort((a, b) => a - b); return d[Math.floor(d.length * %v)]; })()`, q)
}

// recorded starts services with a generated week of n events.
func recorded(b *testing.B, n int) *services {
	b.Helper()
	s := newServices(b, b.TempDir(), "EVENTSVC_MAX_BYTES=16GiB")
	b.Cleanup(s.stopAll)
	s.record(b, incidents.Week{Seed: 1, Events: n, End: time.Now()})
	s.startAll(b)
	return s
}

// stream creates events at a rate for a time; without a rate, those of an hour at 20 a second, as fast as they are
// taken.
func (s *services) stream(b *testing.B, rate int, length time.Duration) {
	b.Helper()
	total, pause := 20*3600, time.Duration(0)
	if rate > 0 {
		total, pause = int(float64(rate)*length.Seconds()), time.Second/time.Duration(rate)
	}
	token := s.token(b, admin)
	begun := time.Now()
	work := make(chan int)
	done := make(chan error)
	const workers = 8
	for range workers {
		go func() {
			var failure error
			for i := range work {
				if err := s.post(token, fmt.Sprintf("stream-%d-%06d", begun.UnixNano(), i)); err != nil {
					failure = err
				}
			}
			done <- failure
		}()
	}
	for i := range total {
		if pause > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(i) * pause)))
		}
		work <- i
	}
	close(work)
	for range workers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// post creates one event.
func (s *services) post(token, name string) error {
	ev := event("default", name)
	ev.Note = "Back-off restarting failed container " + name
	body, err := json.Marshal(ev)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, s.events+eventsPath("default"), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("creating %s: %s", name, resp.Status)
	}
	return nil
}

// BenchmarkWarmStart measures, over a network whose answers take 300 ms, from the second request for the page until the
// plot of a week of 1,000,000 events is drawn, and until nothing is on its way.
func BenchmarkWarmStart(b *testing.B) {
	s := recorded(b, 1_000_000)
	t := openTab(b, s)
	t.open("/console/#/overview?from=-8d")
	t.signIn(admin)
	t.settled()
	slow := cdp.Command[network.OverrideNetworkStateParams, cdp.Empty]{Method: "Network.emulateNetworkConditions"}
	call(t, slow, network.OverrideNetworkStateParams{Latency: 300, DownloadThroughput: -1, UploadThroughput: -1})
	var drawn, settled float64
	n := 0
	for b.Loop() {
		t.reload()
		drawn += evaluate[float64](t, `new Promise((drawn) => (function look() { document.querySelector(".plot svg") ? drawn(performance.now()) : requestAnimationFrame(look); })())`)
		t.settled()
		settled += evaluate[float64](t, `Math.max(...performance.getEntriesByType("resource").map((e) => e.responseEnd))`)
		n++
	}
	b.ReportMetric(drawn/float64(n), "ms-to-plot")
	b.ReportMetric(settled/float64(n), "ms-to-last-answer")
}
