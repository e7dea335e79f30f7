package options

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/store"
)

// continueToken says where the next page of a list begins. Its form is that of
// kube-apiserver: base64url of {"v":"meta.k8s.io/v1","rv":5,"start":"name\u0000"}. Start
// is relative to what is listed. A negative rv stands for the newest version: such a
// token follows an expired one.
type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

// Start is where a list begins, and which version it shows.
type Start struct {
	Revision  uint64    // 0: the newest
	After     store.Key // only keys after it
	Continued bool      // it goes on from a continue token
}

// ParseStart reads where a list of a namespace, or of all, begins. The newest version
// is current.
func ParseStart(namespace string, o metav1.ListOptions, current uint64) (Start, error) {
	rv, err := ParseVersion(o.ResourceVersion)
	switch {
	case err != nil:
		return Start{}, err
	case o.Continue != "" && rv != 0:
		return Start{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	case o.Continue != "":
		revision, after, err := decodeContinue(namespace, o.Continue)
		return Start{revision, after, true}, err
	case rv > current:
		return Start{}, &store.FutureError{Revision: rv, Current: current}
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact, o.ResourceVersionMatch == "" && o.Limit > 0:
		return Start{Revision: rv}, nil
	}
	return Start{}, nil
}

// EncodeContinue makes the token of the page after a key.
func EncodeContinue(namespace string, revision int64, after store.Key) string {
	start := after.Name + "\x00"
	if namespace == "" {
		start = after.Namespace + "/" + start
	}
	// Strings and an integer always marshal.
	b, _ := json.Marshal(continueToken{Version: tokenVersion, Revision: revision, Start: start})
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeContinue reads a token for a list of a namespace, or of all. Revision
// 0 stands for the newest.
func decodeContinue(namespace, text string) (revision uint64, after store.Key, err error) {
	bad := func(format string, args ...any) error {
		return apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + fmt.Sprintf(format, args...))
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, after, bad("%v", err)
	}
	var t continueToken
	if err := json.Unmarshal(raw, &t); err != nil {
		return 0, after, bad("%v", err)
	}
	if t.Version != tokenVersion {
		return 0, after, bad("server does not recognize this encoded version %q", t.Version)
	}
	if t.Revision == 0 {
		return 0, after, bad("incorrect encoded start resourceVersion (version %s)", tokenVersion)
	}
	name, ok := strings.CutSuffix(t.Start, "\x00")
	if t.Start == "" {
		return 0, after, bad("encoded start key empty (version %s)", tokenVersion)
	}
	after = store.Key{Namespace: namespace, Name: name}
	if namespace == "" {
		after.Namespace, after.Name, _ = strings.Cut(name, "/")
	}
	if !ok || !segment(after.Namespace) || !segment(after.Name) {
		return 0, store.Key{}, bad("%q", t.Start)
	}
	return uint64(max(t.Revision, 0)), after, nil
}

// segment reports whether text can be one segment of a key.
func segment(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.ContainsAny(text, "/\x00")
}
