package event

import (
	"cmp"
	"unicode/utf8"
)

// ClusterLabel is the label that names the cluster which an event was mirrored from.
const ClusterLabel = "tidings.example/cluster"

// Labels with which a mirror says more about the object of an event than the event does. They outlive the object.
const (
	OwnerKindLabel    = "tidings.example/owner-kind"    // of the controller at the top: Deployment, CronJob; else the object itself
	OwnerNameLabel    = "tidings.example/owner-name"    // cut if it is long; the annotation of this key then has all of it
	NodeLabel         = "tidings.example/node"          // on which it happened
	NamespaceUIDLabel = "tidings.example/namespace-uid" // tells a namespace from a later one of its name
	// NamespaceLabelPrefix begins the keys of labels that are copied from the namespace.
	NamespaceLabelPrefix = "namespace.tidings.example/"
)

// Dimensions are what occurrences are counted by. A text that is not set is empty.
type Dimensions struct {
	Namespace string
	Type      string
	Reason    string
	Kind      string // of the object that the event is about
	Reporter  string // reportingController, else the deprecated source's component
	Cluster   string // value of [ClusterLabel]
	Owner     string // of [OwnerOf]
	Node      string // value of [NodeLabel], else [NodeOf]
	Pattern   string // of [Pattern], only where it is asked for
}

// DimensionNames are the dimensions as parameters, answers and labels of streams name them, in the order in which they
// are shown. Whoever counts, lists or asks by dimensions does it by these names and [Dimensions.Text].
var DimensionNames = []string{"type", "reason", "kind", "namespace", "reporter", "cluster", "owner", "node"}

// Text returns the dimension of a name, or nil if there is none.
func (d *Dimensions) Text(name string) *string {
	switch name {
	case "type":
		return &d.Type
	case "reason":
		return &d.Reason
	case "kind":
		return &d.Kind
	case "namespace":
		return &d.Namespace
	case "reporter":
		return &d.Reporter
	case "cluster":
		return &d.Cluster
	case "owner":
		return &d.Owner
	case "node":
		return &d.Node
	case PatternDimension:
		return &d.Pattern
	}
	return nil
}

// Bytes returns how long the texts are together.
func (d *Dimensions) Bytes() (n int) {
	n = len(d.Pattern)
	for _, name := range DimensionNames {
		n += len(*d.Text(name))
	}
	return n
}

// OwnerOf returns the owner that a mirror has found for the object of an event, as kind/name, from the event's labels;
// "" if there is none.
func OwnerOf(label func(key string) string) string {
	name := label(OwnerNameLabel)
	if name == "" {
		return ""
	}
	return label(OwnerKindLabel) + "/" + name
}

// NodeOf returns the node on which an event happened, as the event says: the object if it is a Node, the host of the
// deprecated source, or the reportingInstance of a kubelet, which is the name of its node. It is empty if the event
// does not say.
func NodeOf[T string | []byte](kind, name, host, reporter, instance T) T {
	switch {
	case string(kind) == "Node":
		return name
	case len(host) == 0 && string(reporter) == "kubelet":
		return instance
	}
	return host
}

// MaxDimension is how many bytes of a text count in a dimension. No name that Kubernetes allows is longer, but through
// core/v1 any text is accepted, and it is kept for each group that is counted.
const MaxDimension = 512

// cutMark stands for the rest of a text.
const cutMark = "…"

// CutDimension returns a text as a dimension has it: whole, or if it is longer than MaxDimension its beginning and a
// mark.
func CutDimension[T string | []byte](text T) T {
	if len(text) <= MaxDimension {
		return text
	}
	n := MaxDimension - len(cutMark)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return T(string(text[:n]) + cutMark)
}

// IsCut reports whether a text of a dimension may be the beginning of a longer one.
func IsCut(text string) bool { return len(text) > MaxDimension-len(cutMark)-utf8.UTFMax }

// Reporter returns who reports an event: its reportingController or, if it has none, the component of its deprecated
// source. The field source and the column Source, which are kubectl's, prefer the component.
func Reporter[T string | []byte](controller, component T) T {
	if len(controller) > 0 {
		return controller
	}
	return component
}

// Reporter returns who reports an event.
func (a Attributes) Reporter() []byte { return Reporter(a.Field(ReportingController), a.Field(Source)) }

// DimensionsOf returns the dimensions of an event.
func DimensionsOf(namespace string, a Attributes) Dimensions {
	d := Dimensions{Namespace: namespace, Cluster: a.Get(ClusterLabel), Owner: OwnerOf(a.Get), Node: a.Get(NodeLabel)}
	var source, node string
	for f, text := range a.Fields() {
		switch f {
		case Type:
			d.Type = string(text)
		case Reason:
			d.Reason = string(text)
		case RegardingKind:
			d.Kind = string(text)
		case ReportingController:
			d.Reporter = string(text)
		case Source:
			source = string(text)
		case Node:
			node = string(text)
		}
	}
	d.Reporter, d.Node = Reporter(d.Reporter, source), cmp.Or(d.Node, node)
	for _, name := range DimensionNames {
		text := d.Text(name)
		*text = CutDimension(*text)
	}
	return d
}
