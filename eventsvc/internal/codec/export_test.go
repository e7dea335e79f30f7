package codec

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The library's way, which the fast paths must equal.
var (
	DecodeFully = (*Codec).decodeFully
	DecodePlain = (*Codec).decodePlain
	PatchFully  = (*Codec).patchFully
	PatchPlain  = (*Codec).patchPlain
)

// AppendSet is appendSet, and whether it needed no encoder.
func AppendSet(set string) (text []byte, plain bool, err error) {
	text, err = appendSet(nil, &metav1.FieldsV1{Raw: []byte(set)})
	return text, isPlainSet([]byte(set)), err
}

// Piece is how many bytes of a body are looked at without a break.
const Piece = piece
