package policy

import (
	"fmt"
	"math/bits"
	"strings"
)

// Verb is the verb of a request, as Kubernetes names it. Verbs are bits: a Verb can also
// be a set of them.
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

// The verbs of the built-in roles.
const (
	reading = Get | List | Watch
	writing = Create | Update | Patch
	all     = reading | writing | Delete | DeleteCollection
)

// verbNames are the names in the order of the bits.
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

// Names returns the names of the verbs in a set.
func (v Verb) Names() []string {
	names := make([]string, 0, bits.OnesCount8(uint8(v)))
	for i, name := range verbNames {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the name of a verb, or the names of a set joined by commas.
func (v Verb) String() string {
	if v != 0 && v&(v-1) == 0 {
		return verbNames[bits.TrailingZeros8(uint8(v))]
	}
	return strings.Join(v.Names(), ",")
}

// scope returns the built-in role with the fewest verbs that has all of v. Its name is
// the scope as well.
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
