package api

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
)

// Self-subject reviews tell a caller who it is and what it may do: kubectl auth
// whoami and can-i.

// reviewGroups are the groups of the reviews, as discovery shows them.
func reviewGroups() []apiGroup {
	review := func(name, singular, kind string) metav1.APIResource {
		return metav1.APIResource{Name: name, SingularName: singular, Kind: kind, Verbs: metav1.Verbs{"create"}}
	}
	return []apiGroup{
		{authenticationv1.SchemeGroupVersion, []metav1.APIResource{
			review("selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview"),
		}},
		{authorizationv1.SchemeGroupVersion, []metav1.APIResource{
			review("selfsubjectaccessreviews", "selfsubjectaccessreview", "SelfSubjectAccessReview"),
			review("selfsubjectrulesreviews", "selfsubjectrulesreview", "SelfSubjectRulesReview"),
		}},
	}
}

func (s *Server) routeReviews(e *echo.Echo) {
	authentication := "/apis/" + authenticationv1.SchemeGroupVersion.String()
	authorization := "/apis/" + authorizationv1.SchemeGroupVersion.String()
	e.POST(authentication+"/selfsubjectreviews", s.seated(policy.Create, s.whoAmI))
	e.POST(authorization+"/selfsubjectaccessreviews", s.seated(policy.Create, s.canI))
	e.POST(authorization+"/selfsubjectrulesreviews", s.seated(policy.Create, s.whatCanI))
}

// review reads the body of a review and answers with it once it is filled in.
func (s *Server) review(c echo.Context, obj request.Object, kind schema.GroupVersionKind, fill func()) error {
	req := c.Request()
	f, err := s.codec.Negotiate(req, codec.ScopeOther)
	if err != nil {
		return err
	}
	p := s.buffers.get()
	defer s.buffers.put(p)
	body, err := s.readBody(req, p)
	if err != nil {
		return err
	}
	if _, err := createOptions(req, query(req)); err != nil {
		return err
	}
	if err := s.codec.Decode(req.Header.Get("Content-Type"), body, obj); err != nil {
		return err
	}
	if sent := obj.GetObjectKind().GroupVersionKind(); !sent.Empty() && sent != kind {
		return wrongKind(sent, kind)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	fill()
	return s.runtime(c, http.StatusCreated, f, obj)
}

// whoAmI answers with what the token says about the caller.
func (s *Server) whoAmI(c echo.Context) error {
	r := &authenticationv1.SelfSubjectReview{}
	return s.review(c, r, authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), func() {
		r.Status = authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(c.Request())}
	})
}

func userInfo(r *http.Request) authenticationv1.UserInfo {
	caller, ok := bearer.FromContext(r.Context())
	if !ok {
		return authenticationv1.UserInfo{}
	}
	extra := map[string]authenticationv1.ExtraValue{"issuer": {caller.Issuer}}
	if caller.ClientID != "" {
		extra["client_id"] = authenticationv1.ExtraValue{caller.ClientID}
	}
	if len(caller.Scopes) > 0 {
		extra["scope"] = caller.Scopes
	}
	return authenticationv1.UserInfo{Username: caller.Subject, Groups: []string{"system:authenticated"}, Extra: extra}
}

// canI answers whether the caller may do one thing, and by which rule.
func (s *Server) canI(c echo.Context) error {
	r := &authorizationv1.SelfSubjectAccessReview{}
	return s.review(c, r, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), func() {
		r.Status = s.decide(c.Request(), r.Spec)
	})
}

// decide tells whether something is served and allowed.
func (s *Server) decide(r *http.Request, spec authorizationv1.SelfSubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	switch {
	case spec.NonResourceAttributes != nil:
		if slices.Contains([]string{"get", "*"}, spec.NonResourceAttributes.Verb) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "every authenticated caller may read the server's description"}
		}
		return authorizationv1.SubjectAccessReviewStatus{Reason: "paths that are no resources can only be read"}
	case spec.ResourceAttributes != nil && s.serves(spec.ResourceAttributes):
		return s.decideResource(r, spec.ResourceAttributes)
	}
	return authorizationv1.SubjectAccessReviewStatus{Reason: "this server does not serve that"}
}

// serves tells whether a resource is there and knows the verb.
func (s *Server) serves(a *authorizationv1.ResourceAttributes) bool {
	for _, g := range s.groups {
		for _, r := range g.resources {
			if (a.Group == g.Group || a.Group == "*") && (a.Version == g.Version || a.Version == "" || a.Version == "*") &&
				(a.Resource == r.Name || a.Resource == "*") && a.Subresource == "" &&
				(a.Verb == "*" && len(r.Verbs) > 0 || slices.Contains(r.Verbs, a.Verb)) {
				return true
			}
		}
	}
	return false
}

// decideResource asks the policy. The right on a namespace is that on its
// events; reviews are for everybody.
func (s *Server) decideResource(r *http.Request, a *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	namespace := a.Namespace
	switch a.Resource {
	case "events", "*":
	case namespacesResource.Resource:
		namespace = a.Name
	default:
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "every authenticated caller may ask about itself"}
	}
	caller, ok := bearer.FromContext(r.Context())
	verb, err := policy.ParseVerb(a.Verb)
	if !ok || err != nil {
		return authorizationv1.SubjectAccessReviewStatus{Reason: "this server does not serve that"}
	}
	d := s.Policy().Decide(caller, verb, namespace)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: d.Allowed, Reason: d.Rule}
}

// whatCanI answers with everything that the caller may do in a namespace.
func (s *Server) whatCanI(c echo.Context) error {
	r := &authorizationv1.SelfSubjectRulesReview{}
	return s.review(c, r, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), func() {
		r.Status = authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    s.resourceRules(c.Request(), r.Spec.Namespace),
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}},
		}
	})
}

// resourceRules are what the caller may do with each resource in a namespace.
func (s *Server) resourceRules(r *http.Request, namespace string) []authorizationv1.ResourceRule {
	rules := []authorizationv1.ResourceRule{}
	caller, ok := bearer.FromContext(r.Context())
	if !ok {
		return rules
	}
	held := s.Policy().Rules(caller)
	in := func(namespace string) (allowed policy.Verb) {
		for _, rule := range held {
			if rule.Covers(namespace) {
				allowed |= rule.Verbs
			}
		}
		return allowed
	}
	allowed := map[string]policy.Verb{ // those of other resources are for everybody
		"events":                    in(namespace),
		namespacesResource.Resource: in(namespace)&policy.Get | in(policy.AllNamespaces),
	}
	for _, g := range s.groups {
		for _, resource := range g.resources {
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
