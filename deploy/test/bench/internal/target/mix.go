package target

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
)

// A Mix is what a cluster reports while 400 deployments in 40 namespaces restart their pods
// again and again: events as kubelet, scheduler and controllers write them, whose names have
// random parts. It is for measuring how much events repeat each other, so what differs in a
// cluster differs here. The same number always has the same event.
type Mix struct {
	Events int       // how many
	Begin  time.Time // just before the first one; 100 follow in a second
}

// A Mix has so many pods at any time, each of which reports so many events before another one
// takes its place.
const (
	mixPods  = 500
	mixLife  = 8
	mixEvery = 10 * time.Millisecond
)

const (
	nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	hexDigits    = "0123456789abcdef"
)

var mixApps = []string{"checkout", "cart", "catalog", "payments", "search", "frontend", "worker", "ingest", "mailer", "billing"}

// mixStart is what every pod reports first. The rest is any of mixReasons.
var mixStart = []string{"Scheduled", "Pulling", "Pulled", "Created", "Started"}

var mixReasons = []string{
	"Killing", "BackOff", "Unhealthy", "FailedScheduling", "FailedMount", "ScalingReplicaSet", "SuccessfulCreate", "SuccessfulDelete", "Completed",
	"SawCompletedJob", "NodeNotReady", "NodeReady", "Rebooted", "FailedCreate", "Evicted", "Preempted", "OOMKilling", "ProbeWarning", "Sync",
	"UpdatedLoadBalancer", "EnsuringLoadBalancer", "EnsuredLoadBalancer", "ProvisioningSucceeded", "ExternalProvisioning", "WaitForFirstConsumer",
	"VolumeResizeSuccessful", "SuccessfulRescale", "FailedGetResourceMetric", "NoPods", "DNSConfigForming", "TaintManagerEviction",
	"NodeHasSufficientMemory", "NodeHasDiskPressure", "RegisteredNode", "LeaderElection",
}

// text returns random characters.
func text(r *rand.Rand, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// uid returns a random one of version 4.
func uid(r *rand.Rand) string {
	return strings.Join([]string{text(r, hexDigits, 8), text(r, hexDigits, 4), "4" + text(r, hexDigits, 3), "a" + text(r, hexDigits, 3), text(r, hexDigits, 12)}, "-")
}

// mixPod is what the events of a pod have in common.
type mixPod struct{ namespace, app, name, uid, node, image string }

func (m *Mix) pod(i int) mixPod {
	r := rand.New(rand.NewPCG(uint64(i/mixPods/mixLife*mixPods+i%mixPods), 1))
	n := r.IntN(400)
	deployment := rand.New(rand.NewPCG(uint64(n), 2))
	p := mixPod{
		namespace: fmt.Sprintf("team-%02d", n%40), app: fmt.Sprintf("%s-%d", mixApps[n%len(mixApps)], n/len(mixApps)),
		uid: uid(r), node: fmt.Sprintf("node-%03d.eu-west.example.internal", r.IntN(100)),
	}
	p.name = p.app + "-" + text(deployment, nameAlphabet, 9) + "-" + text(r, nameAlphabet, 5)
	p.image = fmt.Sprintf("registry.example.com/%s/%s:v1.%d.%d", p.namespace, p.app, deployment.IntN(40), deployment.IntN(10))
	return p
}

// At returns when event i is observed.
func (m *Mix) At(i int) time.Time { return m.Begin.Add(time.Duration(i+1) * mixEvery) }

// Name returns the namespace and the name of event i.
func (m *Mix) Name(i int) (namespace, name string) {
	p := m.pod(i)
	return p.namespace, fmt.Sprintf("%s.%016x", p.name, m.At(i).UnixNano()+int64(i*7919%1_000_000))
}

// reason returns the reason and the note of event i.
func (m *Mix) reason(i int, p *mixPod, r *rand.Rand) (reason, note string) {
	step := i / mixPods % mixLife
	if reason = mixReasons[r.IntN(len(mixReasons))]; step < len(mixStart) {
		reason = mixStart[step]
	}
	switch reason {
	case "Scheduled":
		note = fmt.Sprintf("Successfully assigned %s/%s to %s", p.namespace, p.name, p.node)
	case "Pulling":
		note = fmt.Sprintf(`Pulling image \"%s\"`, p.image)
	case "Pulled":
		took := 300 + r.IntN(9000)
		note = fmt.Sprintf(`Successfully pulled image \"%s\" in %dms (%dms including waiting). Image size: %d bytes.`, p.image, took, took+r.IntN(50), 40_000_000+len(p.image)*7919)
	case "Created", "Started":
		note = reason + " container " + p.app
	case "Unhealthy":
		note = fmt.Sprintf(`Readiness probe failed: Get \"http://10.%d.%d.%d:8080/healthz\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, r.IntN(4), r.IntN(250), r.IntN(250))
	case "BackOff":
		note = fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", p.app, p.name, p.namespace, p.uid)
	default:
		note = fmt.Sprintf("%s of %s in %s on %s", reason, p.app, p.namespace, p.node)
	}
	return reason, note
}

// body returns event i. One in two has labels, one in five a series.
func (m *Mix) body(i int) string {
	p, r := m.pod(i), rand.New(rand.NewPCG(uint64(i), 3))
	namespace, name := m.Name(i)
	reason, note := m.reason(i, &p, r)
	at := m.At(i).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	kind, labels, series, reporter, instance := "Normal", "", "", "kubelet", p.node
	if r.IntN(10) == 0 {
		kind = "Warning"
	}
	if r.IntN(2) == 0 {
		labels = `,"labels":{"app.kubernetes.io/name":"` + p.app + `","team":"` + p.namespace + `"}`
	}
	if r.IntN(5) == 0 {
		series = fmt.Sprintf(`,"series":{"count":%d,"lastObservedTime":"%s"}`, 2+r.IntN(50), at)
	}
	if reason == "Scheduled" {
		reporter, instance = "default-scheduler", "default-scheduler-control-plane-0"
	}
	return `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"` + name + `","namespace":"` + namespace + `"` + labels + `},"eventTime":"` + at +
		`","reportingController":"` + reporter + `","reportingInstance":"` + instance + `","action":"` + reason + `","reason":"` + reason + `","type":"` + kind +
		`","regarding":{"apiVersion":"v1","kind":"Pod","namespace":"` + namespace + `","name":"` + p.name + `","uid":"` + p.uid +
		`","resourceVersion":"` + fmt.Sprint(48_000_000+i) + `","fieldPath":"spec.containers{` + p.app + `}"},"note":"` + note + `"` + series + `}`
}

// FillMix creates the events of a mix.
func (s *Services) FillMix(ctx context.Context, m *Mix, tell func(done int)) error {
	for at := 0; at < m.Events; at += fillPart {
		token, err := s.FetchToken(ctx, 0)
		if err != nil {
			return fmt.Errorf("fill a mix: %w", err)
		}
		in := map[string]*Events{}
		spec := load.Spec{Addr: s.API(), Secure: s.TLS, Conns: 256, Limit: min(fillPart, m.Events-at), Check: load.Status(201)}
		spec.Next = func(dst []byte, i int) []byte {
			namespace, _ := m.Name(at + i)
			e := in[namespace]
			if e == nil {
				e = NewEvents(s.EventsAddr.String(), token, namespace)
				in[namespace] = e
			}
			return append(dst, e.Request("POST", e.Path(), "Content-Type: "+JSONType+"\r\n", m.body(at+i))...)
		}
		if err := load.Do(spec, fillPatience); err != nil {
			return fmt.Errorf("fill a mix: %w", err)
		}
		tell(at + spec.Limit)
	}
	held, err := s.Held(ctx)
	if err == nil && held != float64(m.Events) {
		err = fmt.Errorf("eventsvc holds %.0f of %d events; is there room for all?", held, m.Events)
	}
	return err
}

// Compress compresses all files of the log, and returns what the command has said.
func (s *Services) Compress() (string, error) {
	said, err := s.command("eventsvc", []string{"compact", "--compress", "--data-dir=" + s.DataDir(), "--listen-admin=" + strings.TrimPrefix(s.EventsAdmin, "http://")}).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compress: %w: %s", err, said)
	}
	return strings.TrimSpace(string(said)), nil
}
