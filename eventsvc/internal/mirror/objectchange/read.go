package objectchange

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	maxDepth  = 32   // levels of an object; what is deeper is compared as one value
	maxFields = 2000 // of an object; the rest is compared as one value
	maxValue  = 256  // bytes of a value that are kept; a hash says whether the rest is the same
)

// Field is a field of an object that holds a value.
type Field struct {
	Path   string `json:"p"`           // such as spec.containers[web].image
	Value  string `json:"v,omitempty"` // as text, at most maxValue bytes; "" if hidden
	Rest   string `json:"r,omitempty"` // hash of the whole value, if Value is not all of it
	Hidden bool   `json:"h,omitempty"` // the value is, or may be, a secret

	hash  uint64   // of a hidden value, by a key of this process; 0: unknown
	steps []string // of the path; nil: the field was read from the file
}

// Seen is what is kept of an object.
type Seen struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Version    string    `json:"version"` // the object's resourceVersion
	Created    time.Time `json:"created"`
	Wrote      time.Time `json:"wrote"`            // when a manager last wrote anything but the status; zero: unknown
	Secrets    time.Time `json:"secrets"`          // when a manager last wrote hidden fields; zero: unknown
	Fields     []Field   `json:"fields"`           // ordered by path
	Series     []Series  `json:"series,omitempty"` // recent events about the object

	Labels   map[string]string       `json:"-"`
	Owners   []metav1.OwnerReference `json:"-"`
	managers []manager
}

// Series is an event about changes of an object to which further changes of the same fields are added for a minute.
type Series struct {
	Version string            `json:"version"` // of the first change
	First   time.Time         `json:"first"`
	Last    time.Time         `json:"last"`
	Count   int32             `json:"count"`
	Before  map[string]*Field `json:"before"` // by path: as the fields were before the first change; nil: not there
}

// key is the key of the hashes of hidden values.
var key = maphash.MakeSeed()

// Read reads an object in JSON. The kind is that of the resource: objects of a list do not tell theirs.
func Read(text []byte, apiVersion, kind string) (*Seen, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("the source sent what is no object: %.200q", text)
	}
	m := new(metav1.ObjectMeta)
	if err := json.Unmarshal(object["metadata"], m); err != nil || m.UID == "" || m.ResourceVersion == "" {
		return nil, fmt.Errorf("the source sent an object without a uid or a version: %.200q", text)
	}
	s := &Seen{
		APIVersion: apiVersion, Kind: kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID, Version: m.ResourceVersion,
		Created: m.CreationTimestamp.UTC(), Labels: m.Labels, Owners: m.OwnerReferences, managers: managersOf(m.ManagedFields),
	}
	r := reader{seen: s, data: kind == "Secret" && apiVersion == "v1" || kind == "ConfigMap" && apiVersion == "v1"}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			r.metadata(m)
		default:
			var value any
			decoder := json.NewDecoder(bytes.NewReader(object[name]))
			decoder.UseNumber()
			_ = decoder.Decode(&value) // was read above: no error
			r.value([]string{name}, "", value, false)
		}
	}
	slices.SortFunc(s.Fields, func(a, b Field) int { return cmp.Compare(a.Path, b.Path) })
	s.Wrote, s.Secrets = lastWrite(s.managers, nil), lastWrite(s.managers, s.Fields)
	return s, nil
}

// reader reads the fields of an object.
type reader struct {
	seen *Seen
	data bool // its data is hidden
}

// metadata reads what people set: labels, annotations, and that the object is to be deleted.
func (r *reader) metadata(m *metav1.ObjectMeta) {
	for _, pairs := range []struct {
		name   string
		values map[string]string
	}{{"labels", m.Labels}, {"annotations", m.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(pairs.values)) {
			if !counted(key) {
				r.value([]string{"metadata", pairs.name, "[" + key + "]"}, key, pairs.values[key], false)
			}
		}
	}
	if m.DeletionTimestamp != nil {
		r.value([]string{"metadata", "deletionTimestamp"}, "", m.DeletionTimestamp.UTC().Format(time.RFC3339), false)
	}
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

// value reads a value and what is below it. The name is the one by which a secret is known.
func (r *reader) value(steps []string, name string, value any, secret bool) {
	if name == "" {
		name = strings.Trim(steps[len(steps)-1], "[]")
	}
	secret = secret || r.data && len(steps) == 1 && (name == "data" || name == "binaryData" || name == "stringData")
	if len(steps) < maxDepth && len(r.seen.Fields) < maxFields {
		switch v := value.(type) {
		case map[string]any:
			if len(v) > 0 {
				r.object(steps, name, v, secret)
				return
			}
		case []any:
			if len(v) > 0 {
				r.list(steps, name, v, secret)
				return
			}
		}
	}
	r.leaf(steps, name, value, secret)
}

// leaf reads a value below which there is nothing, or nothing more is read.
func (r *reader) leaf(steps []string, name string, value any, secret bool) {
	text, ok := value.(string)
	if !ok {
		encoded, _ := json.Marshal(value) // was JSON: no error
		text = string(encoded)
	}
	_, flag := value.(bool)
	f := Field{Path: join(steps), steps: steps}
	if secret || !flag && (secretName(steps, name) || secretText(text)) {
		f.Hidden, f.hash = true, maphash.String(key, text)|1
	} else if f.Value = printable(text); len(text) > maxValue || f.Value != text {
		sum := sha256.Sum256([]byte(text))
		f.Value, f.Rest = cut(f.Value, maxValue), fmt.Sprintf("%x", sum[:8])
	}
	r.seen.Fields = append(r.seen.Fields, f)
}

func (r *reader) object(steps []string, name string, v map[string]any, secret bool) {
	env, _ := v["name"].(string) // of a variable, as {"name": "PASSWORD", "value": …}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		step, named := key, key
		if !plain(key) || name == "data" || name == "binaryData" || name == "labels" || name == "annotations" {
			step = "[" + key + "]"
		}
		if key == "value" && env != "" {
			named = env
		}
		if (name == "labels" || name == "annotations") && counted(key) {
			continue
		}
		r.value(append(slices.Clip(steps), step), named, v[key], secret)
	}
}

// mergeKeys are fields by which the items of a list are known, those of a strategic merge patch first.
var mergeKeys = []string{"name", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey", "type", "key", "host", "path", "kind", "ref"}

func (r *reader) list(steps []string, name string, list []any, secret bool) {
	if words, ok := r.words(steps, list, secret); ok {
		r.value(steps, name, words, false)
		return
	}
	merge := mergeKey(list)
	for i, item := range list {
		step := strconv.Itoa(i)
		object, isObject := item.(map[string]any)
		if isObject && merge != "" {
			step = fmt.Sprint(object[merge])
			if len(object) > 1 { // else the name is all that there is to be seen
				object = maps.Clone(object)
				delete(object, merge)
				if merge == "name" && object["value"] != nil { // the name tells whether the value is a secret
					r.value(append(slices.Clip(steps), "["+step+"]", "value"), step, object["value"], secret)
					delete(object, "value")
					if len(object) == 0 {
						continue
					}
				}
				item = object
			}
		}
		r.value(append(slices.Clip(steps), "["+step+"]"), name, item, secret)
	}
}

// words returns a list of texts and numbers as one value, such as the arguments of a program. Items that are secrets become
// fields of their own.
func (r *reader) words(steps []string, list []any, secret bool) (text string, ok bool) {
	for _, item := range list {
		switch item.(type) {
		case map[string]any, []any:
			return "", false
		}
	}
	words := make([]string, len(list))
	for i, item := range list {
		words[i] = fmt.Sprint(item)
		if secret || secretText(words[i]) || i > 0 && secretFlag(list[i-1]) {
			r.value(append(slices.Clip(steps), "["+strconv.Itoa(i)+"]"), "", words[i], true)
			words[i] = hiddenWord
		}
	}
	return strings.Join(words, " "), true
}

// hiddenWord stands for a secret among the words of a list.
const hiddenWord = "(hidden)"

// mergeKey returns the field by which all items of a list are known, "" if there is none.
func mergeKey(list []any) string {
	for _, key := range mergeKeys {
		seen := map[any]bool{}
		for _, item := range list {
			object, _ := item.(map[string]any)
			switch v := object[key].(type) {
			case string, json.Number:
				seen[v] = true
			}
		}
		if len(seen) == len(list) {
			return key
		}
	}
	return ""
}

// join returns the path of steps.
func join(steps []string) string {
	var b strings.Builder
	for i, s := range steps {
		if i > 0 && s[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(printable(s))
	}
	return b.String()
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
