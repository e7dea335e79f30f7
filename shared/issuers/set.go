package issuers

import (
	"context"
	"errors"

	"tidings.example/shared/bearer"
)

// Set are the issuers that are in force at one time. It verifies the tokens of all of them.
type Set[E Settings] struct {
	*bearer.Issuers
	list   []*Issuer[E]
	byName map[string]*Issuer[E]
}

func newSet[E Settings](list []*Issuer[E]) (*Set[E], error) {
	var verifiers []*bearer.Verifier
	byName := map[string]*Issuer[E]{}
	for _, i := range list {
		verifiers = append(verifiers, i.Verifier)
		byName[i.Verifier.Issuer] = i
	}
	all, err := bearer.NewIssuers(verifiers...)
	if err != nil {
		return nil, err
	}
	return &Set[E]{Issuers: all, list: list, byName: byName}, nil
}

// Find returns an issuer by its name. It returns nil if the issuer is not trusted.
func (s *Set[E]) Find(issuer string) *Issuer[E] {
	if s == nil {
		return nil
	}
	return s.byName[issuer]
}

func find[E Settings](list []*Issuer[E], issuer string) *Issuer[E] {
	for _, i := range list {
		if i.Verifier.Issuer == issuer {
			return i
		}
	}
	return nil
}

// Entries returns the entries of the issuers.
func (s *Set[E]) Entries() []E {
	var all []E
	for _, i := range s.list {
		all = append(all, i.Settings)
	}
	return all
}

func (s *Set[E]) keys() []*bearer.IssuerKeys {
	var all []*bearer.IssuerKeys
	for _, i := range s.list {
		all = append(all, i.keys)
	}
	return all
}

func (s *Set[E]) ready(ctx context.Context) error {
	var errs []error
	for _, keys := range s.keys() {
		err := keys.Ready(ctx)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
