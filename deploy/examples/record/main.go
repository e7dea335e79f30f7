// Command record reports two Events with client-go's stock recorder, as any
// controller does, and sees them come back on a watch.
//
//	go run ./record http://127.0.0.1:9000/oauth2/token http://127.0.0.1:8080 demo demo-secret
//
// A fifth argument names the file with the certificate authority of eventsvc, for an https address.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

func main() {
	if len(os.Args) != 5 && len(os.Args) != 6 {
		log.Fatal("usage: record TOKEN_URL EVENTS_URL CLIENT_ID CLIENT_SECRET [CA_FILE]")
	}
	ctx := context.Background()
	login := clientcredentials.Config{TokenURL: os.Args[1], ClientID: os.Args[3], ClientSecret: os.Args[4], AuthStyle: oauth2.AuthStyleInParams}
	tokens := login.TokenSource(ctx) // keeps a token, and fetches the next one 10 s before it expires
	config := &rest.Config{Host: os.Args[2], WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return &oauth2.Transport{Source: tokens, Base: next}
	}}
	if len(os.Args) == 6 {
		config.CAFile = os.Args[5]
	}
	client := kubernetes.NewForConfigOrDie(config).EventsV1()

	watch, err := client.Events("default").Watch(ctx, metav1.ListOptions{FieldSelector: "regarding.name=nightly"})
	if err != nil {
		log.Fatal(err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		log.Fatal(err)
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/backup")
	job := &corev1.ObjectReference{Kind: "Job", APIVersion: "batch/v1", Namespace: "default", Name: "nightly"}
	recorder.Eventf(job, nil, corev1.EventTypeNormal, "Started", "Backup", "backup of %s started", "orders")
	recorder.Eventf(job, nil, corev1.EventTypeWarning, "Slow", "Backup", "backup of %s took %d minutes", "orders", 42)

	for seen := map[string]bool{}; !seen["Started"] || !seen["Slow"]; {
		event, ok := (<-watch.ResultChan()).Object.(*eventsv1.Event)
		if !ok {
			log.Fatal("the watch ended early")
		}
		seen[event.Reason] = true
		fmt.Println(event.Type, event.Reason, event.Note)
	}
}
