package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/shared/waittest"
)

// R20: a stop that is asked for in the middle of load loses nothing that was
// acknowledged, and ends watches cleanly.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	i, dir := newIssuer(t), t.TempDir()
	p := start(t, dir, i)
	watch, err := p.send("GET", eventsPath+"?watch=1", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	var acknowledged sync.Map
	var created atomic.Int64
	var wg sync.WaitGroup
	stopped := make(chan struct{})
	for n := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stopped: // who answers now is somebody else
					return
				default:
				}
				name := fmt.Sprintf("e-%d-%d", n, i)
				resp, err := p.send("POST", eventsPath, newEvent(name))
				if err != nil {
					return // the listener is closed
				}
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusCreated {
					acknowledged.Store(name, true)
					created.Add(1)
				}
			}
		})
	}
	waittest.Reaches(t, "acknowledged", 200, created.Load)
	err = p.stop()
	close(stopped)
	if err != nil {
		t.Fatal(err)
	}
	waittest.Join(t, &wg)
	told := 0
	lines := bufio.NewScanner(watch.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"type":"ADDED"`) {
			told++
		}
	}
	if lines.Err() != nil || told == 0 {
		t.Errorf("the watch ended after %d events: %v", told, lines.Err())
	}

	p = start(t, dir, i)
	there := map[string]bool{}
	for _, item := range p.items(0) {
		there[item.(map[string]any)["metadata"].(map[string]any)["name"].(string)] = true
	}
	acknowledged.Range(func(name, _ any) bool {
		if !there[name.(string)] {
			t.Errorf("%s was acknowledged and is gone", name)
		}
		return true
	})
	t.Logf("%d events acknowledged, %d there, %d told", created.Load(), len(there), told)
}

// send sends a request to the API.
func (p *process) send(method, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url("--listen-http")+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	return http.DefaultClient.Do(req)
}
