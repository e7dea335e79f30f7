package target

import (
	"cmp"
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
	Events int           // how many
	Begin  time.Time     // just before the first one
	Every  time.Duration // another one follows; 0: 10 ms
	Life   int           // of the events that a pod reports before another one takes its place; 0: 8
}

// mixPods is how many pods a Mix has at any time.
const mixPods = 500

func (m *Mix) life() int { return cmp.Or(m.Life, 8) }

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
	r := rand.New(rand.NewPCG(uint64(i/mixPods/m.life()*mixPods+i%mixPods), 1))
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
func (m *Mix) At(i int) time.Time {
	return m.Begin.Add(time.Duration(i+1) * cmp.Or(m.Every, 10*time.Millisecond))
}

// Name returns the namespace and the name of event i.
func (m *Mix) Name(i int) (namespace, name string) {
	p := m.pod(i)
	return p.namespace, fmt.Sprintf("%s.%016x", p.name, m.At(i).UnixNano()+int64(i*7919%1_000_000))
}

// reason returns the reason and the note of event i.
func (m *Mix) reason(i int, p *mixPod, r *rand.Rand) (reason, note string) {
	step := i / mixPods % m.life()
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

// mixEvent is an event of a mix, with texts as JSON has them.
type mixEvent struct {
	mixPod
	number                                                     int
	in, as                                                     string // namespace and name
	reason, note, at, kind, labels, series, reporter, instance string
}

// event returns event i. One in two has labels, one in five a series.
func (m *Mix) event(i int) mixEvent {
	r := rand.New(rand.NewPCG(uint64(i), 3))
	e := mixEvent{mixPod: m.pod(i), number: i, kind: "Normal", reporter: "kubelet", at: m.At(i).UTC().Format("2006-01-02T15:04:05.000000Z07:00")}
	e.in, e.as = m.Name(i)
	e.reason, e.note = m.reason(i, &e.mixPod, r)
	e.instance = e.node
	if r.IntN(10) == 0 {
		e.kind = "Warning"
	}
	if r.IntN(2) == 0 {
		e.labels = `,"labels":{"app.kubernetes.io/name":"` + e.app + `","team":"` + e.namespace + `"}`
	}
	if r.IntN(5) == 0 {
		e.series = fmt.Sprintf(`,"series":{"count":%d,"lastObservedTime":"%s"}`, 2+r.IntN(50), e.at)
	}
	if e.reason == "Scheduled" {
		e.reporter, e.instance = "default-scheduler", "default-scheduler-control-plane-0"
	}
	return e
}

// object is the event as its reporter sends it, with more metadata.
func (e *mixEvent) object(metadata string) string {
	return `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"` + e.as + `","namespace":"` + e.in + `"` + e.labels + metadata + `},"eventTime":"` + e.at +
		`","reportingController":"` + e.reporter + `","reportingInstance":"` + e.instance + `","action":"` + e.reason + `","reason":"` + e.reason + `","type":"` + e.kind +
		`","regarding":{"apiVersion":"v1","kind":"Pod","namespace":"` + e.in + `","name":"` + e.name + `","uid":"` + e.uid +
		`","resourceVersion":"` + fmt.Sprint(48_000_000+e.number) + `","fieldPath":"spec.containers{` + e.app + `}"},"note":"` + e.note + `"` + e.series + `}`
}

func (m *Mix) body(i int) string {
	e := m.event(i)
	return e.object("")
}

// UID returns the uid of the pod that event i is about.
func (m *Mix) UID(i int) string { return m.pod(i).uid }

// Line returns event i as an export of eventsvc has it.
func (m *Mix) Line(i int) string {
	e := m.event(i)
	created := e.at[:len("2006-01-02T15:04:05")] + "Z"
	return `{"type":"ADDED","object":` + e.object(`,"uid":"`+uid(rand.New(rand.NewPCG(uint64(i), 4)))+`","resourceVersion":"`+fmt.Sprint(2+i)+`","creationTimestamp":"`+created+
		`","managedFields":[{"manager":"`+e.reporter+`","operation":"Update","apiVersion":"events.k8s.io/v1","time":"`+created+`","fieldsType":"FieldsV1","fieldsV1":{"f:action":{},"f:eventTime":{},`+
		`"f:note":{},"f:reason":{},"f:regarding":{},"f:reportingController":{},"f:reportingInstance":{},"f:type":{}}}]`) + "}\n"
}

// FlatLine returns event i as one sends it to a log store.
func (m *Mix) FlatLine(i int) string {
	e := m.event(i)
	return `{"_time":"` + e.at + `","_msg":"` + e.note + `","name":"` + e.as + `","namespace":"` + e.in + `","uid":"` + uid(rand.New(rand.NewPCG(uint64(i), 4))) +
		`","type":"` + e.kind + `","reason":"` + e.reason + `","action":"` + e.reason + `","reportingController":"` + e.reporter + `","reportingInstance":"` + e.instance +
		`","kind":"Pod","object":"` + e.name + `","objectUid":"` + e.mixPod.uid + `","objectApiVersion":"v1","objectResourceVersion":"` + fmt.Sprint(48_000_000+i) + `"}` + "\n"
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
