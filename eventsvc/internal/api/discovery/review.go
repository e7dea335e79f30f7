package discovery

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
)

// reviewer answers self-subject reviews.
type reviewer struct {
	codec  *codec.Codec
	io     *httpio.IO
	guard  *access.Guard
	groups []Group // what there is to ask about
}

// RouteReviews serves self-subject reviews, which tell a caller who it is and what it may do:
// kubectl auth whoami and can-i. Every authenticated caller may ask.
func RouteReviews(e *echo.Echo, c *codec.Codec, io *httpio.IO, guard *access.Guard, groups []Group) {
	s := &reviewer{c, io, guard, groups}
	authentication := "/apis/" + authenticationv1.SchemeGroupVersion.String()
	authorization := "/apis/" + authorizationv1.SchemeGroupVersion.String()
	e.POST(authentication+"/selfsubjectreviews", guard.Seated(policy.Create, s.whoAmI))
	e.POST(authorization+"/selfsubjectaccessreviews", guard.Seated(policy.Create, s.canI))
	e.POST(authorization+"/selfsubjectrulesreviews", guard.Seated(policy.Create, s.whatCanI))
}

// review reads the body of a review and answers with it once it is filled in.
func (s *reviewer) review(c echo.Context, obj request.Object, kind schema.GroupVersionKind, fill func(*bearer.Caller)) error {
	req := c.Request()
	caller, ok := bearer.FromContext(req.Context())
	if !ok {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	// 1. The format of the answer.
	f, err := codec.Negotiate(req, codec.ScopeOther)
	if err != nil {
		return err
	}
	// 2. The body.
	body, free, err := s.io.Body(req)
	if err != nil {
		return err
	}
	defer free()
	// 3. The options, which have no effect here.
	if _, err := httpio.ParseWrite(httpio.CreateOptions, "")(req, httpio.QueryOf(req), nil); err != nil {
		return err
	}
	// 4. The review.
	if err := s.codec.Decoder.Decode(req.Header.Get("Content-Type"), body, obj); err != nil {
		return err
	}
	if sent := obj.GetObjectKind().GroupVersionKind(); !sent.Empty() && sent != kind {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is a %s of %s, this path takes a %s of %s",
			sent.Kind, sent.GroupVersion(), kind.Kind, kind.GroupVersion()))
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	fill(caller)
	return s.io.Object(c, http.StatusCreated, f, obj)
}

// whoAmI answers with what the token says about the caller.
func (s *reviewer) whoAmI(c echo.Context) error {
	r := &authenticationv1.SelfSubjectReview{}
	return s.review(c, r, authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), func(caller *bearer.Caller) {
		extra := map[string]authenticationv1.ExtraValue{"issuer": {caller.Issuer}}
		if caller.ClientID != "" {
			extra["client_id"] = authenticationv1.ExtraValue{caller.ClientID}
		}
		if len(caller.Scopes) > 0 {
			extra["scope"] = caller.Scopes
		}
		r.Status.UserInfo = authenticationv1.UserInfo{Username: caller.Subject, Groups: []string{"system:authenticated"}, Extra: extra}
	})
}

// canI answers whether the caller may do one thing, and by which rule.
func (s *reviewer) canI(c echo.Context) error {
	r := &authorizationv1.SelfSubjectAccessReview{}
	return s.review(c, r, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), func(caller *bearer.Caller) {
		r.Status.Allowed, r.Status.Reason = s.decide(caller, r.Spec)
	})
}

// decide returns whether something is served and allowed, and why. The right on a
// namespace is that on its events. Reviews are for everybody.
func (s *reviewer) decide(caller *bearer.Caller, spec authorizationv1.SelfSubjectAccessReviewSpec) (allowed bool, reason string) {
	const unknown = "this server does not serve that"
	a := spec.ResourceAttributes
	switch {
	case spec.NonResourceAttributes != nil:
		if verb := spec.NonResourceAttributes.Verb; verb == "get" || verb == "*" {
			return true, "every authenticated caller may read the server's description"
		}
		return false, "paths that are no resources can only be read"
	case a == nil || !s.serves(a):
		return false, unknown
	}
	namespace := a.Namespace
	switch a.Resource {
	case "events", "*":
	case access.Namespaces.Resource:
		namespace = a.Name
	default:
		return true, "every authenticated caller may ask about itself"
	}
	verb, err := policy.ParseVerb(a.Verb)
	if err != nil {
		return false, unknown
	}
	d := s.guard.Policy().Decide(caller, verb, namespace)
	for _, cluster := range clusters(a) {
		d = d.Of(&cluster)
	}
	return d.Allowed, d.Rule
}

// clusters returns the clusters to which the selector of a review limits the question; none: it asks for any of them.
func clusters(a *authorizationv1.ResourceAttributes) []string {
	if a.LabelSelector == nil {
		return nil
	}
	for _, r := range a.LabelSelector.Requirements {
		if r.Key == event.ClusterLabel && r.Operator == metav1.LabelSelectorOpIn {
			return r.Values
		}
	}
	return nil
}

// serves reports whether a resource is served and has the verb.
func (s *reviewer) serves(a *authorizationv1.ResourceAttributes) bool {
	for _, g := range s.groups {
		for _, r := range g.Resources {
			if (a.Group == g.Group || a.Group == "*") && (a.Version == g.Version || a.Version == "" || a.Version == "*") &&
				(a.Resource == r.Name || a.Resource == "*") && a.Subresource == "" &&
				(a.Verb == "*" && len(r.Verbs) > 0 || slices.Contains(r.Verbs, a.Verb)) {
				return true
			}
		}
	}
	return false
}

// whatCanI answers with everything that the caller may do in a namespace.
func (s *reviewer) whatCanI(c echo.Context) error {
	r := &authorizationv1.SelfSubjectRulesReview{}
	return s.review(c, r, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), func(caller *bearer.Caller) {
		r.Status.ResourceRules = s.resourceRules(caller, r.Spec.Namespace)
		r.Status.EvaluationError = limits(s.guard.Policy().Rules(caller), r.Spec.Namespace)
		r.Status.NonResourceRules = []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}}
	})
}

// limits names the rules for a namespace that are for events of some clusters only, which the form of the answer cannot
// say.
func limits(rules []policy.Rule, namespace string) string {
	var names []string
	for _, rule := range rules {
		if rule.Namespaces.Match(namespace) && !rule.Clusters.All() {
			names = append(names, rule.Name)
		}
	}
	return strings.Join(names, "; ")
}

// resourceRules are what the caller may do with each resource in a namespace.
func (s *reviewer) resourceRules(caller *bearer.Caller, namespace string) []authorizationv1.ResourceRule {
	held := s.guard.Policy().Rules(caller)
	in := func(namespace string) (allowed policy.Verb) {
		for _, rule := range held {
			if rule.Namespaces.Match(namespace) {
				allowed |= rule.Verbs
			}
		}
		return allowed
	}
	allowed := map[string]policy.Verb{ // other resources are for everybody
		"events":                   in(namespace),
		access.Namespaces.Resource: in(namespace)&policy.Get | in(policy.AllNamespaces),
	}
	rules := []authorizationv1.ResourceRule{}
	for _, g := range s.groups {
		for _, resource := range g.Resources {
			verbs := slices.Clone(resource.Verbs)
			if held, decided := allowed[resource.Name]; decided {
				verbs = slices.DeleteFunc(verbs, func(verb string) bool { return !slices.Contains(held.Names(), verb) })
			}
			if len(verbs) > 0 {
				rules = append(rules, authorizationv1.ResourceRule{
					Verbs: verbs, APIGroups: []string{g.Group}, Resources: []string{resource.Name},
				})
			}
		}
	}
	return rules
}
