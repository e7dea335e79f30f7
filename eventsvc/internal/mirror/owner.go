package mirror

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// metadata is what is read of an object.
type metadata struct {
	Metadata struct {
		Name              string                  `json:"name"`
		Namespace         string                  `json:"namespace"`
		UID               types.UID               `json:"uid"`
		CreationTimestamp metav1.Time             `json:"creationTimestamp"`
		Labels            map[string]string       `json:"labels"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
}

// top has the kinds that own what belongs to a workload. Their own owners, such as the custom resource of an operator,
// are not asked for.
var top = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "CronJob": true}

// controlled has the kinds that mostly have an owner, which only the object tells.
var controlled = map[string]bool{"Pod": true, "ReplicaSet": true, "Job": true}

// owner returns the controller at the top of an object. A ReplicaSet and a Job are not read to know theirs: a
// Deployment names its ReplicaSets by the hash that is a label of the pods too, and a CronJob names its Jobs by the
// minute of their time.
func owner(kind string, object *metadata) (ownerKind, name string) {
	m := &object.Metadata
	i := slices.IndexFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller })
	if i < 0 || top[kind] {
		return kind, m.Name
	}
	ref := m.OwnerReferences[i]
	switch ref.Kind {
	case "ReplicaSet":
		if hash := m.Labels["pod-template-hash"]; hash != "" {
			if name, ok := strings.CutSuffix(ref.Name, "-"+hash); ok {
				return "Deployment", name
			}
		}
	case "Job":
		if name, ok := cronJob(ref.Name, m.CreationTimestamp.Time); ok {
			return "CronJob", name
		}
	}
	return ref.Kind, ref.Name
}

// cronJob returns the name of the CronJob that has made a Job. The Job's name ends with the minute at which it was due,
// counted from 1970, which tells it from a date such as 20260131.
func cronJob(job string, created time.Time) (name string, ok bool) {
	const digits, late = 8, 365 * 24 * time.Hour
	cut := len(job) - digits - 1
	if cut < 1 || job[cut] != '-' {
		return "", false
	}
	minute, err := strconv.ParseUint(job[cut+1:], 10, 32)
	return job[:cut], err == nil && time.Unix(int64(minute)*60, 0).Sub(created).Abs() < late
}

// factsOf returns what an object adds to events about it.
func (e *enricher) factsOf(kind string, object *metadata) facts {
	f := facts{namespace: object.Metadata.Namespace, labels: pick(e.keys, object.Metadata.Labels)}
	if e.Owner {
		f.ownerKind, f.ownerName = owner(kind, object)
	}
	return f
}

// nodeOf returns the node on which an event happened: the node that it is about, or the host of the kubelet or
// kube-proxy that reports it. Other reporters set the name of a pod or nothing as their host.
func nodeOf(ev *corev1.Event) string {
	switch host := ev.Source.Host; {
	case ev.InvolvedObject.Kind == "Node":
		return ev.InvolvedObject.Name
	case ev.Source.Component == "kubelet" || ev.Source.Component == "kube-proxy":
		return host
	case ev.ReportingController == "kubelet" || ev.ReportingController == "kube-proxy":
		return ev.ReportingInstance
	}
	return ""
}

// pick returns some of the labels, in the order of the keys, as facts keep them.
func pick(keys []string, labels map[string]string) string {
	var b strings.Builder
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			b.WriteString(key + "\x00" + value + "\x00")
		}
	}
	return b.String()
}

// pairs iterates over labels that pick has returned.
func pairs(labels string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for labels != "" {
			var key, value string
			key, labels, _ = strings.Cut(labels, "\x00")
			value, labels, _ = strings.Cut(labels, "\x00")
			if !yield(key, value) {
				return
			}
		}
	}
}

// namespace is what a namespace adds to its events.
type namespace struct {
	uid     string
	labels  string // under the keys that copies have
	created time.Time
	former  *namespace // of the same name, which was deleted
}

func (e *enricher) namespaceFacts(object *metadata) namespace {
	n := namespace{uid: string(object.Metadata.UID), created: object.Metadata.CreationTimestamp.Time}
	if e.Namespace {
		labels := maps.Clone(object.Metadata.Labels)
		var keys []string
		for _, label := range e.NamespaceLabels {
			if value, ok := labels[label]; ok {
				key, _ := NamespaceKey(label)
				keys, labels[key] = append(keys, key), value
			}
		}
		n.labels = pick(keys, labels)
	}
	return n
}
