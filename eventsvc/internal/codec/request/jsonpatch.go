package request

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"

	"tidings.example/eventsvc/internal/event"
)

// maxPatchCopies bounds the bytes that all copy operations of a JSON patch add, as
// kube-apiserver does.
const maxPatchCopies = 3 << 20

// limitCopies sets maxPatchCopies, which is a variable of the library.
var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = maxPatchCopies })

// jsonPatchOp is one operation of a JSON patch (RFC 6902). It is decoded only to
// find unknown and duplicate members.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func (c *Decoder) applyJSONPatch(text, patch []byte, strict bool) ([]byte, []error, error) {
	if n, plain := plainOperations(patch); plain && n > maxPatchOperations {
		return nil, nil, c.tooManyOperations(n) // before they take memory
	}
	var problems []error
	if strict {
		var ops []jsonPatchOp
		found, err := kjson.UnmarshalStrict(patch, &ops)
		if err != nil {
			// Clients of kube-apiserver see the type that it decodes into.
			cause := strings.ReplaceAll(err.Error(), "request.jsonPatchOp", "handlers.jsonPatchOp")
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + cause)
		}
		for _, p := range found {
			problems = append(problems, fmt.Errorf("json patch %w", p))
		}
	}
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if len(ops) > maxPatchOperations {
		return nil, nil, c.tooManyOperations(len(ops))
	}
	if text, err = applyOperations(ops, text); err != nil {
		return nil, nil, rejectedPatch(err)
	}
	return text, problems, nil
}

func (c *Decoder) tooManyOperations(n int) error {
	return &event.LimitError{StatusError: apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, n)), Limit: "patch-operations"}
}

// plainOperations counts the operations of a patch without decoding them. It
// returns false if the body is not a list of objects whose members are strings:
// such a patch is for the library.
func plainOperations(patch []byte) (n int, plain bool) {
	if !bytes.HasPrefix(bytes.TrimLeft(patch, " \t\r\n"), []byte("[")) {
		return 0, false
	}
	r := plainReader{text: string(patch)}
	r.failed = !r.take('[')
	for more := true; more && !r.failed; more = r.take(',') {
		r.each(func(string) bool { r.string(); return true })
		n++
	}
	r.failed = r.failed || !r.take(']')
	return n, r.ended()
}

// applyOperations executes operations. The library panics at some that make no
// sense, such as a test of the whole document without a value.
func applyOperations(ops jsonpatch.Patch, text []byte) (result []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("patch makes no sense: %v", r)
		}
	}()
	limitCopies()
	return ops.Apply(text)
}
