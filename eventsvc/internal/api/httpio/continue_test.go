package httpio

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/store"
)

// TestContinueForms: tokens without a number of remaining items, as kube-apiserver makes
// them, are read.
func TestContinueForms(t *testing.T) {
	t.Parallel()
	after := store.Key{Namespace: "shop", Name: "web"}
	for _, tt := range []struct {
		namespace, json string
		want            Start
	}{
		{"shop", `{"v":"meta.k8s.io/v1","rv":7,"start":"web\u0000"}`, Start{Revision: 7, After: after, Continued: true}},
		{"", `{"v":"meta.k8s.io/v1","rv":7,"start":"shop/web\u0000"}`, Start{Revision: 7, After: after, Continued: true}},
		{"shop", `{"v":"meta.k8s.io/v1","rv":-1,"start":"web\u0000"}`, Start{After: after, Continued: true}},
		{"shop", `{"v":"meta.k8s.io/v1","rv":7,"start":"web\u0000","remaining":12}`, Start{Revision: 7, After: after, Remaining: 12, Continued: true}},
	} {
		token := base64.RawURLEncoding.EncodeToString([]byte(tt.json))
		got, err := ParseStart(tt.namespace, metav1.ListOptions{Continue: token}, 9)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", tt.json, err, diff)
		}
		revision := int64(tt.want.Revision)
		if revision == 0 {
			revision = -1
		}
		if got := EncodeContinue(tt.namespace, revision, after, tt.want.Remaining); got != token {
			t.Errorf("%s is written as %s", token, got)
		}
	}
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":7,"start":"web\u0000","remaining":-1}`))
	if _, err := ParseStart("shop", metav1.ListOptions{Continue: token}, 9); err == nil || !strings.Contains(err.Error(), "remaining items -1") {
		t.Errorf("a negative number: %v", err)
	}
}
