package search

import (
	"regexp"
	"strings"
)

// named is a name with a slash, as kubectl takes and tables write it: pod/web-0 or shop/web-0.
var named = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)/([a-z0-9*][a-z0-9.*-]*)$`)

// shortKinds are the names of kinds for which kubectl has a short one.
var shortKinds = map[string]string{
	"cj": "cronjob", "cm": "configmap", "deploy": "deployment", "ds": "daemonset", "ep": "endpoints", "hpa": "horizontalpodautoscaler", "ing": "ingress",
	"netpol": "networkpolicy", "no": "node", "ns": "namespace", "pdb": "poddisruptionbudget", "po": "pod", "pv": "persistentvolume",
	"pvc": "persistentvolumeclaim", "rs": "replicaset", "sa": "serviceaccount", "sts": "statefulset", "svc": "service",
}

// kinds are the kinds whose names are no namespaces to people: those with a short name, and some more. In lower case.
var kinds = func() map[string]string {
	all := map[string]string{"job": "job", "secret": "secret", "certificate": "certificate", "ingresses": "ingress", "networkpolicies": "networkpolicy"}
	for _, kind := range []string{"job", "secret", "certificate"} {
		all[kind+"s"] = kind
	}
	for short, kind := range shortKinds {
		all[short], all[kind], all[kind+"s"] = kind, kind, kind
	}
	return all
}()

// IsKind reports whether a word is a name of a kind, in any case, that people write before the name of an object.
func IsKind(word string) bool { return kinds[strings.ToLower(word)] != "" }

// nameOf is the expression for a word that names an object with a slash, nil for other words. Before the slash is a
// kind if it is a known one or begins with a capital letter. Otherwise it may be a namespace, a kind that is not known
// here, or text as in library/nginx, and all three count. The name behind it may be a part of the object's, as words
// may.
func nameOf(text string) *Expr {
	parts := named.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	before, name := parts[1], Expr{Kind: Field, Name: "name", Values: []string{"*" + strings.Trim(parts[2], "*") + "*"}}
	of := func(field, value string) *Expr {
		object := name
		return &Expr{Kind: And, Parts: []*Expr{{Kind: Field, Name: field, Values: []string{value}}, &object}}
	}
	if kind, known := kinds[strings.ToLower(before)]; known {
		return of("kind", fold(kind))
	}
	if before[0] < 'a' {
		return of("kind", fold(before))
	}
	e := &Expr{Kind: Or, Parts: []*Expr{of("namespace", fold(before)), of("kind", fold(before))}}
	if word := strings.Trim(text, "*"); !strings.Contains(word, "*") {
		e.Parts = append(e.Parts, wordOf(word, false))
	}
	return e
}
