package access

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

const (
	// impersonatePrefix begins the canonical name of every header that asks to act as another user.
	impersonatePrefix = "Impersonate-"
	// noImpersonation is the reason of a refusal.
	noImpersonation = "impersonation is not supported here: leave out --as"
)

// NoImpersonation returns the answer to a request that asks to act as another user. A client that sends such a header
// expects the rights of that user, so the request must not be served with the rights of its token.
//
// It answers as kube-apiserver answers a caller without the right: 403 if a header names a user, otherwise 400. The 403
// names the verb impersonate; since 1.36, kube-apiserver names narrower verbs. A request that has only an empty user,
// or only headers with the prefix that kube-apiserver does not know, is refused too, although kube-apiserver ignores
// such headers.
func NoImpersonation(req *http.Request) error {
	caller, ok := bearer.FromContext(req.Context())
	if !ok || !impersonates(req.Header) {
		return nil
	}
	ctx := req.Context()
	httpserver.SetVerb(ctx, "impersonate")
	httpserver.Annotate(ctx, slog.String("refused", "impersonation"))
	user := req.Header.Get(authenticationv1.ImpersonateUserHeader)
	of, namespace, name := impersonated(user)
	audit.Decided(ctx, audit.Decision{
		Verb: "impersonate", Resource: of.Resource, Namespace: namespace, Rule: noImpersonation,
		Impersonate: &audit.Impersonate{User: user, Groups: len(req.Header[authenticationv1.ImpersonateGroupHeader])},
	})
	if user == "" {
		return httpio.Beyond("impersonation", apierrors.NewBadRequest("requested "+wanted(req.Header)+" without impersonating a user name"))
	}
	return httpio.Beyond("impersonation", Forbidden(caller.Subject, of, "impersonate", namespace, name, noImpersonation))
}

func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, impersonatePrefix) {
			return true
		}
	}
	return false
}

// impersonated returns the resource that stands for a user: a service account if the user is named like one.
func impersonated(user string) (of schema.GroupResource, namespace, name string) {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, name, _ = strings.Cut(account, ":")
		if len(validation.ValidateNamespaceName(namespace, false)) == 0 && len(validation.ValidateServiceAccountName(name, false)) == 0 {
			return schema.GroupResource{Resource: "serviceaccounts"}, namespace, name
		}
	}
	return schema.GroupResource{Resource: "users"}, "", user
}

// wanted describes the requested user in kube-apiserver's words, which are Go syntax.
func wanted(h http.Header) string {
	var extra map[string][]string
	for _, header := range slices.Sorted(maps.Keys(h)) { // two names may be one key
		if key, ok := strings.CutPrefix(header, authenticationv1.ImpersonateUserExtraHeaderPrefix); ok {
			key = strings.ToLower(key)
			if unescaped, err := url.PathUnescape(key); err == nil {
				key = unescaped
			}
			if extra == nil {
				extra = map[string][]string{}
			}
			extra[key] = append(extra[key], h[header]...)
		}
	}
	return fmt.Sprintf(`&user.DefaultInfo{Name:"", UID:%q, Groups:%#v, Extra:%#v}`,
		h.Get(authenticationv1.ImpersonateUIDHeader), h[authenticationv1.ImpersonateGroupHeader], extra)
}
