package policy

import (
	"fmt"
	"math/bits"
	"strings"
)

// Verb is what a request does with events, in the words of Kubernetes. Several
// verbs together are a set.
type Verb uint8

// The verbs.
const (
	Get Verb = 1 << iota
	List
	Watch
	Create
	Update
	Patch
	Delete
	DeleteCollection
)

// The sets that the built-in roles have.
const (
	reading = Get | List | Watch
	writing = Create | Update | Patch
	all     = reading | writing | Delete | DeleteCollection
)

// verbNames are the names by the verb's bit.
var verbNames = [...]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// ParseVerb reads the name of one verb, or "*" for all.
func ParseVerb(text string) (Verb, error) {
	if text == "*" {
		return all, nil
	}
	for i, name := range verbNames {
		if name == text {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("%q is no verb: use %s or *", text, strings.Join(verbNames[:], ", "))
}

// Names are the names of the verbs in a set.
func (v Verb) Names() []string {
	names := make([]string, 0, bits.OnesCount8(uint8(v)))
	for i, name := range verbNames {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String is the name of one verb; those of a set are joined.
func (v Verb) String() string {
	if v != 0 && v&(v-1) == 0 {
		return verbNames[bits.TrailingZeros8(uint8(v))]
	}
	return strings.Join(v.Names(), ",")
}

// scope is the smallest built-in role, and so the scope, that has a verb.
func (v Verb) scope() string {
	switch {
	case reading&v == v:
		return RoleRead
	case writing&v == v:
		return RoleWrite
	default:
		return RoleAdmin
	}
}
