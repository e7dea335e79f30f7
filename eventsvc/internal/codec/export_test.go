package codec

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AppendSet is appendSet, and whether it needed no encoder.
func AppendSet(set string) (text []byte, plain bool, err error) {
	text, err = appendSet(nil, &metav1.FieldsV1{Raw: []byte(set)})
	return text, isPlainSet([]byte(set)), err
}
