// Command reporter simulates a small cluster: it records the events of pods
// that are scheduled and started, and that sometimes fail. `docker compose
// --profile demo up` runs it. It needs nothing but the standard library, and so
// shows what a client in any language sends.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	tokenURL := flag.String("token-url", "http://127.0.0.1:9000/oauth2/token", "token endpoint")
	eventsURL := flag.String("events-url", "http://127.0.0.1:8080", "event service")
	clientID := flag.String("client-id", "demo", "client to authenticate as")
	secretFile := flag.String("client-secret-file", "local/demo-secret", "file with its secret")
	every := flag.Duration("every", 2*time.Second, "mean time between two events")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	secret, err := os.ReadFile(*secretFile)
	if err != nil {
		log.Fatal(err)
	}
	r := &recorder{
		tokenURL: *tokenURL, eventsURL: *eventsURL, client: &http.Client{Timeout: 10 * time.Second},
		login: url.Values{"grant_type": {"client_credentials"}, "client_id": {*clientID}, "client_secret": {strings.TrimSpace(string(secret))}},
	}
	report(ctx, r, *every)
}

// report records events until ctx ends.
func report(ctx context.Context, r *recorder, every time.Duration) {
	for {
		pod := newPod()
		for _, s := range life() {
			r.record(ctx, s, pod, 1)
			if !wait(ctx, every) {
				return
			}
		}
		if rand.IntN(3) > 0 {
			continue
		}
		again := trouble()
		for count := range 1 + rand.IntN(5) { // the same thing again becomes a series
			r.record(ctx, again, pod, count+1)
			if !wait(ctx, every) {
				return
			}
		}
	}
}

// recorder writes events, with a token that it renews.
type recorder struct {
	tokenURL, eventsURL string
	client              *http.Client
	login               url.Values // the form of a token request (RFC 6749 section 4.4.2)
	token               string
	renew               time.Time
	name                string // of the event that was written last; empty: it could not be
}

// record creates the event of a step or, if this is not its first occurrence, notes the
// series in it. An event that cannot be written is logged and left out.
func (r *recorder) record(ctx context.Context, s step, pod reference, count int) {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	path := r.eventsURL + "/apis/events.k8s.io/v1/namespaces/" + pod.Namespace + "/events"
	method, media := http.MethodPost, "application/json"
	body := map[string]any{
		"metadata": map[string]string{"generateName": pod.Name + "-"}, "eventTime": now, "type": s.kind, "reason": s.reason, "action": s.action,
		"note": fmt.Sprintf(s.note, pod.Name), "regarding": pod, "reportingController": s.by, "reportingInstance": s.by + "-1",
	}
	if count > 1 && r.name != "" {
		method, media, path = http.MethodPatch, "application/merge-patch+json", path+"/"+r.name
		body = map[string]any{"series": map[string]any{"count": count, "lastObservedTime": now}}
	}
	text, err := json.Marshal(body)
	if err != nil {
		log.Fatal(err)
	}
	var written struct {
		Metadata struct{ Name string }
	}
	err = r.authorized(ctx, method, path, media, text, &written)
	if errors.Is(err, errRefused) { // the token service may have new keys: a new token
		r.renew = time.Time{}
		err = r.authorized(ctx, method, path, media, text, &written)
	}
	if err != nil {
		log.Print(err)
	}
	r.name = written.Metadata.Name
}

// authorized sends a request with a token.
func (r *recorder) authorized(ctx context.Context, method, address, media string, body []byte, answer any) error {
	if err := r.authenticate(ctx); err != nil {
		return err
	}
	return r.ask(ctx, method, address, media, bytes.NewReader(body), answer)
}

// errRefused means that the token is not accepted.
var errRefused = errors.New("the token is refused")

// authenticate gets a token if there is none that lasts.
func (r *recorder) authenticate(ctx context.Context) error {
	if time.Now().Before(r.renew) {
		return nil
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int    `json:"expires_in"`
	}
	r.token = ""
	if err := r.ask(ctx, http.MethodPost, r.tokenURL, "application/x-www-form-urlencoded", strings.NewReader(r.login.Encode()), &answer); err != nil {
		return err
	}
	r.token, r.renew = answer.Token, time.Now().Add(time.Duration(answer.Seconds)*time.Second*4/5)
	return nil
}

// ask sends a request and decodes its answer.
func (r *recorder) ask(ctx context.Context, method, address, media string, body io.Reader, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", media)
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized && r.token != "":
		return fmt.Errorf("%s %s: %w", method, address, errRefused)
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s %.300s", method, address, resp.Status, text)
	}
	return json.Unmarshal(text, answer)
}

// step is something that a part of a cluster reports about a pod.
type step struct{ by, kind, reason, action, note string }

const scheduler, kubelet = "default-scheduler", "kubelet"

// life is what every pod goes through.
func life() []step {
	return []step{
		{scheduler, "Normal", "Scheduled", "Binding", "Successfully assigned %s to node-2"},
		{kubelet, "Normal", "Pulled", "Pulling", "Image for %s is on this machine"},
		{kubelet, "Normal", "Created", "Creating", "Made the container of %s"},
		{kubelet, "Normal", "Started", "Starting", "The container of %s runs"},
	}
}

// trouble is what happens to some of them.
func trouble() step {
	all := []step{
		{kubelet, "Warning", "Unhealthy", "Probing", "%s: readiness probe answered 503"},
		{kubelet, "Warning", "BackOff", "Restarting", "%s ended with 1; it is started again later"},
		{kubelet, "Warning", "Evicted", "Evicting", "%s: the node is short of memory"},
		{scheduler, "Warning", "FailedScheduling", "Scheduling", "No node has two free cores for %s"},
	}
	return all[rand.IntN(len(all))]
}

// reference is the object that an event is about.
type reference struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

func newPod() reference {
	app := []string{"web", "orders", "search", "mail"}[rand.IntN(4)]
	return reference{
		Kind: "Pod", APIVersion: "v1", Namespace: []string{"shop", "staging"}[rand.IntN(2)], Name: fmt.Sprintf("%s-%05x", app, rand.IntN(1<<20)),
		UID: fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", rand.Uint32(), rand.IntN(1<<16), rand.IntN(1<<12), rand.IntN(1<<12), rand.Int64N(1<<48)),
	}
}

// wait waits until the next event is due. It returns false when the program
// must end.
func wait(ctx context.Context, every time.Duration) bool {
	timer := time.NewTimer(time.Duration(rand.ExpFloat64() * float64(every)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
