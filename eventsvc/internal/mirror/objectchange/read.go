package objectchange

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

const (
	maxDepth  = 32   // levels of an object; what is deeper is one hidden value
	maxFields = 2000 // of an object; what is more is hidden likewise
	maxValue  = 256  // bytes of a value that are kept; a hash says whether the rest is the same
)

// Seen is what is kept of an object.
type Seen struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Namespace  string            `json:"namespace,omitempty"`
	Name       string            `json:"name"`
	UID        types.UID         `json:"uid"`
	Version    string            `json:"version"` // the object's resourceVersion
	Created    time.Time         `json:"created"`
	Wrote      time.Time         `json:"wrote"`            // when a manager last wrote anything but the status; zero: unknown
	Fields     map[string]string `json:"fields"`           // values by path, such as spec.containers[web].image
	Series     []Series          `json:"series,omitempty"` // recent events about the object

	Hashes   map[string]uint64       `json:"-"` // of hidden values, by path and by a key of this process
	Labels   map[string]string       `json:"-"`
	Owners   []metav1.OwnerReference `json:"-"`
	managers []manager
}

// Values of fields. Printable text has neither of these characters.
const (
	empty  = `""`
	hidden = "\x00" // is or may be a secret
	andSo  = "\x01" // before the hash of a value that is not kept whole
)

// key is the key of the hashes of hidden values.
var key = maphash.MakeSeed()

// Read reads an object in JSON. The kind is that of the resource: objects of a list do not tell theirs.
func Read(text []byte, apiVersion, kind string) (*Seen, error) {
	var u unstructured.Unstructured
	err := kjson.UnmarshalCaseSensitivePreserveInts(text, &u.Object)
	if err == nil && (u.GetUID() == "" || u.GetResourceVersion() == "") {
		err = errors.New("it has no uid or no version")
	}
	if err != nil {
		return nil, fmt.Errorf("the source sent what is no object of the kind %s: %w", kind, err)
	}
	object := u.Object
	metadata, _ := object["metadata"].(map[string]any)
	s := &Seen{
		APIVersion: apiVersion, Kind: kind, Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), Version: u.GetResourceVersion(),
		Created: u.GetCreationTimestamp().UTC(), Fields: map[string]string{}, Hashes: map[string]uint64{},
		Labels: u.GetLabels(), Owners: u.GetOwnerReferences(), managers: managersOf(metadata),
	}
	if len(s.managers) > 0 {
		s.Wrote = s.managers[0].wrote
	}
	maps.DeleteFunc(metadata, func(name string, _ any) bool {
		return !slices.Contains([]string{"labels", "annotations", "deletionTimestamp"}, name)
	})
	maps.DeleteFunc(object, func(name string, _ any) bool {
		return name == "apiVersion" || name == "kind" || name == "status" || name == "metadata" && len(metadata) == 0
	})
	data := apiVersion == "v1" && (kind == "Secret" || kind == "ConfigMap")
	for _, name := range slices.Sorted(maps.Keys(object)) {
		secret := data && slices.Contains([]string{"data", "binaryData", "stringData"}, name)
		s.value(printable(name), name, "", object[name], sight{secret: secret}, 1)
	}
	return s, nil
}

// counted reports whether a label or an annotation is one that only controllers set, or a copy of the whole object.
func counted(key string) bool {
	switch key {
	case "kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation",
		"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", "deployment.kubernetes.io/revision-history",
		"control-plane.alpha.kubernetes.io/leader", "pod-template-hash", "controller-revision-hash", "endpoints.kubernetes.io/last-change-trigger-time",
		"node.alpha.kubernetes.io/ttl", "volumes.kubernetes.io/controller-managed-attach-detach", "csi.volume.kubernetes.io/nodeid",
		"volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
		"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "argocd.argoproj.io/refresh", "reconcile.fluxcd.io/requestedAt":
		return true
	}
	return strings.HasPrefix(key, "autoscaling.alpha.kubernetes.io/")
}

// value reads a value and what is below it. The name tells whether it is a secret. A list knows it by one of its
// fields, if it is an item that has others.
func (s *Seen) value(path, name, known string, value any, see sight, depth int) {
	if see == (sight{}) {
		see = sightOf(name)
	}
	some, more := false, depth < maxDepth && len(s.Fields) < maxFields
	switch v := value.(type) {
	case map[string]any:
		if some = len(v) > 0; some && more {
			s.object(path, name, known, v, see, depth)
			return
		}
	case []any:
		if some = len(v) > 0; some && more {
			s.list(path, name, v, see, depth)
			return
		}
	case bool:
		see.secret = false
	}
	s.leaf(path, value, see.secret || some)
}

// leaf reads a value below which nothing more is looked at.
func (s *Seen) leaf(path string, value any, secret bool) {
	text, ok := value.(string)
	if !ok {
		encoded, _ := json.Marshal(value) // was JSON: no error
		text = string(encoded)
	}
	switch shown := printable(text); {
	case secret || secretText(text):
		s.Fields[path], s.Hashes[path] = hidden, maphash.String(key, text)|1
	case text == "":
		s.Fields[path] = empty
	case len(text) > maxValue || shown != text:
		sum := sha256.Sum256([]byte(text))
		s.Fields[path] = fmt.Sprintf("%s%s%x", cut(shown, maxValue), andSo, sum[:8])
	default:
		s.Fields[path] = text
	}
}

func (s *Seen) object(path, name, known string, v map[string]any, see sight, depth int) {
	keys := name == "data" || name == "binaryData" || name == "labels" || name == "annotations"
	variable, _ := v["name"].(string) // as {"name": "PASSWORD", "value": …}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		step, named := "."+key, key
		if keys || !plain(key) {
			step = "[" + printable(key) + "]"
		}
		if key == "value" && variable != "" {
			named = variable
		}
		if key != known && (!keys || !counted(key)) {
			s.value(path+step, named, "", v[key], see, depth+1)
		}
	}
}

func (s *Seen) list(path, name string, list []any, see sight, depth int) {
	if words, ok := s.words(path, list, see); ok {
		s.leaf(path, words, false)
		return
	}
	merge := mergeKey(list)
	for i, item := range list {
		step, known := strconv.Itoa(i), ""
		if object, _ := item.(map[string]any); merge != "" {
			step = printable(fmt.Sprint(object[merge]))
			if len(object) > 1 { // else the name is all that there is to be seen
				known = merge
			}
		}
		s.value(path+"["+step+"]", name, known, item, see, depth+1)
	}
}

// words returns a list of texts and numbers as one value, such as the arguments of a program. Items that are secrets
// become fields of their own.
func (s *Seen) words(path string, list []any, see sight) (text string, ok bool) {
	words := make([]string, len(list))
	for i, item := range list {
		switch item.(type) {
		case map[string]any, []any:
			return "", false
		}
		words[i] = fmt.Sprint(item)
	}
	for i, word := range words {
		if see.secret || secretText(word) || i > 0 && secretFlag(list[i-1]) {
			s.leaf(fmt.Sprintf("%s[%d]", path, i), word, true)
			words[i] = "(hidden)"
		}
	}
	return strings.Join(words, " "), true
}

// mergeKeys are fields by which the items of a list are known, those of a strategic merge patch first.
var mergeKeys = []string{"name", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey", "type", "key", "host", "path", "kind", "ref"}

// mergeKey returns the field by which all items of a list are known, "" if there is none.
func mergeKey(list []any) string {
	for _, key := range mergeKeys {
		seen := map[any]bool{}
		for _, item := range list {
			object, _ := item.(map[string]any)
			switch v := object[key].(type) {
			case string, int64, float64:
				seen[v] = true
			}
		}
		if len(seen) == len(list) {
			return key
		}
	}
	return ""
}

// plain reports whether a key can stand in a path as it is.
func plain(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(c rune) bool { return c != '_' && c != '-' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// printable returns text on one line, without what is no character to be read.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n', c == '\t', c == '\r':
			return ' '
		case c == unicode.ReplacementChar, !unicode.IsPrint(c):
			return -1
		}
		return c
	}, text)
}

// cut returns the first bytes of text, in whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
