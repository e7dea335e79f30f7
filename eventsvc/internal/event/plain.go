package event

import (
	"strings"

	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The functions of this file are fast paths. Nearly every event is valid, and a look at
// its bytes finds that out for less than the library's regular expressions and paths of
// fields: validation takes 7 % of the processor time of a create without them. The
// library decides if a rule may be broken. A plain function that returns false decides
// nothing; one that returns true must never be wrong.

// validateMetaUpdate returns what ValidateObjectMetaUpdate does.
func validateMetaUpdate(next, live *metav1.ObjectMeta) field.ErrorList {
	if plainUpdate(next, live) {
		return nil
	}
	return metavalidation.ValidateObjectMetaUpdate(next, live, field.NewPath("metadata"))
}

// validateMeta returns what ValidateObjectMeta does for a new event.
func validateMeta(m *metav1.ObjectMeta, name metavalidation.ValidateNameFunc) field.ErrorList {
	if m.GenerateName == "" && plainSubdomain(m.Name) && plainLabel(m.Namespace) &&
		m.Generation >= 0 && len(m.Finalizers) == 0 && plainMeta(m) {
		return nil
	}
	return metavalidation.ValidateObjectMeta(m, true, name, field.NewPath("metadata"))
}

func plainUpdate(next, live *metav1.ObjectMeta) bool {
	return next.Name == live.Name && next.Namespace == live.Namespace && next.UID == live.UID &&
		next.CreationTimestamp == live.CreationTimestamp && next.Generation == live.Generation && next.Generation >= 0 &&
		next.ResourceVersion != "" && next.DeletionTimestamp == nil && live.DeletionTimestamp == nil &&
		next.DeletionGracePeriodSeconds == nil && live.DeletionGracePeriodSeconds == nil && plainMeta(next)
}

// plainMeta checks what both a create and an update check.
func plainMeta(m *metav1.ObjectMeta) bool {
	for key, value := range m.Labels {
		if !plainKey(key) || value != "" && !plainPart(value) {
			return false
		}
	}
	for key := range m.Annotations {
		if !plainKey(strings.ToLower(key)) {
			return false
		}
	}
	for i := range m.ManagedFields {
		e := &m.ManagedFields[i]
		known := e.Operation == metav1.ManagedFieldsOperationUpdate || e.Operation == metav1.ManagedFieldsOperationApply
		if !known || e.FieldsType != "FieldsV1" || e.Subresource != "" || !plainManager(e.Manager) {
			return false
		}
	}
	return len(m.OwnerReferences) == 0 && bytesIn(m.Annotations) <= metavalidation.TotalAnnotationSizeLimitB
}

// plainSubdomain reports whether a text is a DNS subdomain (RFC 1123).
func plainSubdomain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case c == '-', c == '.': // neither first nor last, and not beside a dot
			if i == 0 || i == len(s)-1 || s[i-1] == '.' || c == '.' && s[i-1] == '-' {
				return false
			}
		default:
			return false
		}
	}
	return s != "" && len(s) <= validation.DNS1123SubdomainMaxLength
}

// plainLabel reports whether a text is a DNS label (RFC 1123).
func plainLabel(s string) bool {
	return len(s) <= validation.DNS1123LabelMaxLength && !strings.Contains(s, ".") && plainSubdomain(s)
}

// plainKey reports whether a text is a qualified name, such as a label key or a
// reportingController.
func plainKey(s string) bool {
	if prefix, name, ok := strings.Cut(s, "/"); ok {
		return plainSubdomain(prefix) && plainPart(name)
	}
	return plainPart(s)
}

// plainPart reports whether a text is the name part of a qualified name.
func plainPart(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case (c == '-' || c == '_' || c == '.') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != "" && len(s) <= validation.LabelValueMaxLength
}

func plainManager(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= metav1validation.FieldManagerMaxLength
}
