package event

import (
	"testing"

	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FuzzPlainMetadata: the library has nothing against what is valid beyond doubt, whichever view it is for.
func FuzzPlainMetadata(f *testing.F) {
	f.Add("web-1.17a", "shop", "app.kubernetes.io/name", "Web_1.a")
	f.Add("a--b", "a.b", "A.b/c", "-")
	f.Add("a.", "", "/", "")
	f.Fuzz(func(t *testing.T, name, namespace, key, value string) {
		m := &metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{key: value}, Annotations: map[string]string{key: value}}
		if plainMetadata(m) && plainName(name) {
			for _, valid := range []metavalidation.ValidateNameFunc{validatePathName, metavalidation.NameIsDNSSubdomain} {
				if errs := metavalidation.ValidateObjectMeta(m, true, valid, field.NewPath("metadata")); len(errs) > 0 {
					t.Error(errs)
				}
			}
		}
		if plainKey(key) && len(validation.IsQualifiedName(key)) > 0 || plainName(namespace) && len(validation.IsDNS1123Subdomain(namespace)) > 0 {
			t.Errorf("%q or %q is not valid", key, namespace)
		}
	})
}

// TestPlainMetadata: usual metadata is valid beyond doubt, so that the library is not asked.
func TestPlainMetadata(t *testing.T) {
	t.Parallel()
	m := &metav1.ObjectMeta{
		Name: "web-7d4b9c-x2x5p.17a3", Namespace: "kube-system", Labels: map[string]string{"app.kubernetes.io/name": "Web", "team": ""},
		Annotations: map[string]string{"mirror.tidings.example/uid": "any text"},
	}
	if !plainMetadata(m) || !plainName(m.Name) {
		t.Error("the library is asked")
	}
}
