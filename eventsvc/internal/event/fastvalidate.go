package event

import (
	"strings"

	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateMetadata is the library's check of the metadata of a new event. The library is asked only if something is
// unusual, because its regular expressions take a fifth of the time of a create.
func validateMetadata(m *metav1.ObjectMeta, name metavalidation.ValidateNameFunc) field.ErrorList {
	metadata := field.NewPath("metadata")
	if plainName(m.Name) && plainMetadata(m) && len(v1validation.ValidateManagedFields(m.ManagedFields, metadata)) == 0 {
		return nil
	}
	return metavalidation.ValidateObjectMeta(m, true, name, metadata)
}

// plainMetadata reports whether metadata without its name and managed fields is valid beyond doubt.
func plainMetadata(m *metav1.ObjectMeta) bool {
	if m.GenerateName != "" || len(m.OwnerReferences) > 0 || len(m.Finalizers) > 0 || m.Generation < 0 || !plainText(m.Namespace, validation.DNS1123LabelMaxLength, false, "-") {
		return false
	}
	for k, v := range m.Labels {
		if !plainKey(k) || v != "" && !plainText(v, validation.LabelValueMaxLength, true, "-_.") {
			return false
		}
	}
	for k := range m.Annotations {
		if !plainKey(k) {
			return false
		}
	}
	return metavalidation.ValidateAnnotationsSize(m.Annotations) == nil
}

// plainName reports whether a name is a DNS subdomain beyond doubt, which is a valid name in both views.
func plainName(name string) bool {
	return plainText(name, validation.DNS1123SubdomainMaxLength, false, "-.")
}

// plainKey reports whether the key of a label or of an annotation is valid beyond doubt.
func plainKey(key string) bool {
	if prefix, name, prefixed := strings.Cut(key, "/"); prefixed {
		return plainName(prefix) && plainText(name, validation.LabelValueMaxLength, true, "-_.")
	}
	return plainText(key, validation.LabelValueMaxLength, true, "-_.")
}

// plainText reports whether a text has letters and digits, and single marks between them.
func plainText(text string, longest int, upper bool, marks string) bool {
	mark := true // what is before the next character is a mark, or nothing
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', upper && 'A' <= c && c <= 'Z':
			mark = false
		case !mark && strings.IndexByte(marks, c) >= 0:
			mark = true
		default:
			return false
		}
	}
	return !mark && len(text) <= longest
}
