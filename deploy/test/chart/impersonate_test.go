package chart_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// impersonate asks eventsvc as somebody who may not act as others, and compares the refusals with the refusals of
// kube-apiserver's filters. A request without a user is compared with the newer filter, one with a user with the older
// filter: the newer filter names verbs that eventsvc does not have.
func impersonate(t *testing.T, name string, ours kubernetes.Interface) {
	t.Helper()
	no := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "impersonation is not supported here: leave out --as", nil
	})
	withUser := impersonation.WithImpersonation(http.NotFoundHandler(), no, scheme.Codecs)
	without := impersonation.WithConstrainedImpersonation(http.NotFoundHandler(), no, scheme.Codecs)
	theirs := func(headers map[string][]string) (st metav1.Status) {
		filter := without
		if strings.Join(headers["Impersonate-User"], "") != "" {
			filter = withUser
		}
		req := httptest.NewRequestWithContext(request.WithUser(t.Context(), &user.DefaultInfo{Name: name}), http.MethodDelete, "/", nil)
		for header, values := range headers {
			req.Header[header] = values
		}
		rec := httptest.NewRecorder()
		filter.ServeHTTP(rec, req)
		if err := runtime.DecodeInto(scheme.Codecs.UniversalDecoder(), rec.Body.Bytes(), &st); err != nil {
			t.Fatalf("%v: %v: %s", headers, err, rec.Body)
		}
		return st
	}
	refusal := func(headers map[string][]string) metav1.Status {
		req := ours.CoreV1().RESTClient().Delete().AbsPath("/api/v1/namespaces/shop/events/web-0")
		for header, values := range headers {
			req.SetHeader(header, values...)
		}
		var refused *apierrors.StatusError
		if err := req.Do(t.Context()).Error(); !errors.As(err, &refused) {
			t.Fatalf("%v: %v", headers, err)
		}
		refused.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"} // which the client leaves out
		return refused.ErrStatus
	}
	for _, headers := range []map[string][]string{
		{"Impersonate-User": {"nobody"}},
		{"Impersonate-User": {"nobody"}, "Impersonate-Group": {"system:masters", "b"}, "Impersonate-Uid": {"u"}},
		{"Impersonate-User": {"first", "second"}, "Impersonate-Extra-Scopes": {"a", "b"}},
		{"Impersonate-User": {`<a href="x">&`}},
		{"Impersonate-User": {"system:serviceaccount:tidings:tidings-viewer"}},
		{"Impersonate-User": {"system:serviceaccount:shop:batch"}, "Impersonate-Group": {"g"}},
		{"Impersonate-User": {"system:serviceaccount:shop:"}},
		{"Impersonate-User": {"system:serviceaccount:Shop:batch"}},
		{"Impersonate-User": {"system:serviceaccount:shop:a:b"}},
		{"Impersonate-User": {"system:node:n1"}},
		{"Impersonate-User": {"system:anonymous"}},
		{"Impersonate-Group": {"g", `a"b\c`}},
		{"Impersonate-Uid": {"u-1", "u-2"}},
		{"Impersonate-Extra-Acme.com%2fproject": {"p"}, "Impersonate-Extra-Bad%zz": {"q"}, "Impersonate-Extra-Scopes": {"a", "b"}},
		{"Impersonate-User": {""}, "Impersonate-Group": {""}},
	} {
		if diff := cmp.Diff(theirs(headers), refusal(headers)); diff != "" {
			t.Errorf("%v (-kube-apiserver +eventsvc):\n%s", headers, diff)
		}
	}
}
