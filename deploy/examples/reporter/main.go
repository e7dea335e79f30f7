// Command reporter simulates a small cluster: it records the events of pods
// that are scheduled and started, and that sometimes fail. `docker compose
// --profile demo up` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
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
	login := clientcredentials.Config{TokenURL: *tokenURL, ClientID: *clientID, ClientSecret: strings.TrimSpace(string(secret)), AuthStyle: oauth2.AuthStyleInParams}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: *eventsURL, WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return &oauth2.Transport{Source: login.TokenSource(ctx), Base: next}
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := report(ctx, client, *every); err != nil {
		log.Fatal(err)
	}
}

// report records events until ctx ends.
func report(ctx context.Context, client kubernetes.Interface, every time.Duration) error {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	recorders := map[string]events.EventRecorder{}
	for _, by := range []string{scheduler, kubelet} {
		recorders[by] = broadcaster.NewRecorder(scheme.Scheme, by)
	}
	say := func(s step, pod *corev1.ObjectReference) bool {
		recorders[s.by].Eventf(pod, nil, s.kind, s.reason, s.action, s.note, pod.Name)
		return wait(ctx, every)
	}
	for {
		pod := newPod()
		for _, s := range life() {
			if !say(s, pod) {
				return nil
			}
		}
		if rand.IntN(3) > 0 {
			continue
		}
		again := trouble()
		for range 1 + rand.IntN(5) { // the same thing again becomes a series
			if !say(again, pod) {
				return nil
			}
		}
	}
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

func newPod() *corev1.ObjectReference {
	app := []string{"web", "orders", "search", "mail"}[rand.IntN(4)]
	return &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: []string{"shop", "staging"}[rand.IntN(2)],
		Name: fmt.Sprintf("%s-%05x", app, rand.IntN(1<<20)), UID: types.UID(uuid.NewUUID()),
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
