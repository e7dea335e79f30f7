package client

import (
	"errors"
	"fmt"
	"strings"
)

// Binding names the assertions that authenticate a client, by issuer and subject: another issuer can assert the same
// subject. The zero value names none.
type Binding struct {
	Issuer  string
	Subject string // empty: the id of the client; or the service accounts of a namespace, with serviceAccounts and anyAccount
}

// A subject of Kubernetes is system:serviceaccount:NAMESPACE:NAME. With anyAccount for the name, it stands for all
// accounts of the namespace. No other subject stands for more than itself.
const (
	serviceAccounts = "system:serviceaccount:"
	anyAccount      = "*"
)

// validate returns an error that names the field that is invalid.
func (b Binding) validate() error {
	switch {
	case b.Subject != "" && b.Issuer == "":
		return errors.New("assertion_subject: needs assertion_issuer, because other issuers can assert the same subject")
	case !strings.Contains(b.Subject, anyAccount):
		return nil
	}
	if namespace := b.namespace(); namespace == "" || strings.ContainsAny(namespace, ":"+anyAccount) {
		return fmt.Errorf("assertion_subject: %q; a * may only stand for the name in system:serviceaccount:NAMESPACE:*", b.Subject)
	}
	return nil
}

// namespace returns the namespace whose service accounts the subject stands for, empty if it stands for itself.
func (b Binding) namespace() string {
	rest, kubernetes := strings.CutPrefix(b.Subject, serviceAccounts)
	namespace, any := strings.CutSuffix(rest, ":"+anyAccount)
	if !kubernetes || !any {
		return ""
	}
	return namespace
}

// subjects returns the values of Binding.Subject that cover the subject of an assertion, the closest first.
func subjects(subject string) []string {
	list := []string{subject}
	if rest, kubernetes := strings.CutPrefix(subject, serviceAccounts); kubernetes {
		if namespace, _, ok := strings.Cut(rest, ":"); ok {
			list = append(list, serviceAccounts+namespace+":"+anyAccount)
		}
	}
	return list
}

// covers reports whether the subject of an assertion may be this client, and whether it is one of many.
func (b Binding) covers(clientID, subject string) (ok, many bool) {
	if namespace := b.namespace(); namespace != "" {
		name, within := strings.CutPrefix(subject, serviceAccounts+namespace+":")
		return within && name != "" && !strings.Contains(name, ":"), true
	}
	if b.Subject != "" {
		return subject == b.Subject, false
	}
	return subject == clientID, false
}
