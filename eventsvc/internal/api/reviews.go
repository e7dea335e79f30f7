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
	"tidings.example/shared/bearer"
)

// Self-subject reviews tell a caller who it is and what it may do: kubectl auth
// whoami and can-i. Every authenticated caller may do all that is served.

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
	e.POST(authentication+"/selfsubjectreviews", s.whoAmI)
	e.POST(authorization+"/selfsubjectaccessreviews", s.canI)
	e.POST(authorization+"/selfsubjectrulesreviews", s.whatCanI)
}

// review reads the body of a review and answers with it once it is filled in.
func (s *Server) review(c echo.Context, obj codec.Object, kind schema.GroupVersionKind, fill func()) error {
	req := c.Request()
	f, err := s.codec.Negotiate(req, codec.ScopeOther)
	if err != nil {
		return err
	}
	p := s.buffers.get()
	defer s.buffers.put(p)
	body, err := readBody(req, p)
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

// canI answers whether the caller may do one thing.
func (s *Server) canI(c echo.Context) error {
	r := &authorizationv1.SelfSubjectAccessReview{}
	return s.review(c, r, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), func() {
		r.Status = s.decide(r.Spec)
	})
}

// decide tells whether something is allowed. Nothing is denied to who has a
// good token, but not everything is there.
func (s *Server) decide(spec authorizationv1.SelfSubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	allowed := authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "every authenticated caller may do everything"}
	switch {
	case spec.NonResourceAttributes != nil:
		if slices.Contains([]string{"get", "*"}, spec.NonResourceAttributes.Verb) {
			return allowed
		}
		return authorizationv1.SubjectAccessReviewStatus{Reason: "paths that are no resources can only be read"}
	case spec.ResourceAttributes != nil:
		a := spec.ResourceAttributes
		for _, g := range s.groups() {
			for _, r := range g.resources {
				if (a.Group == g.Group || a.Group == "*") && (a.Version == g.Version || a.Version == "" || a.Version == "*") &&
					(a.Resource == r.Name || a.Resource == "*") && a.Subresource == "" &&
					(a.Verb == "*" || slices.Contains(r.Verbs, a.Verb)) {
					return allowed
				}
			}
		}
	}
	return authorizationv1.SubjectAccessReviewStatus{Reason: "this server does not serve that"}
}

// whatCanI answers with everything that the caller may do.
func (s *Server) whatCanI(c echo.Context) error {
	r := &authorizationv1.SelfSubjectRulesReview{}
	return s.review(c, r, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), func() {
		r.Status = authorizationv1.SubjectRulesReviewStatus{
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}},
		}
		for _, g := range s.groups() {
			for _, resource := range g.resources {
				r.Status.ResourceRules = append(r.Status.ResourceRules, authorizationv1.ResourceRule{
					Verbs: resource.Verbs, APIGroups: []string{g.Group}, Resources: []string{resource.Name},
				})
			}
		}
	})
}
