package httpio

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
// is relative to what is listed. A negative rv stands for the newest version:
// package events sends such a token when it refuses an expired one.
//
// Remaining is our own: how many events there are from Start on, so that no page has to
// count them. Tokens of kube-apiserver's form do without, and programs that do not know it
// pass over it.
type continueToken struct {
	Version   string `json:"v"`
	Revision  int64  `json:"rv"`
	Start     string `json:"start"`
	Remaining int64  `json:"remaining,omitempty"`
}

const tokenVersion = "meta.k8s.io/v1"

// Start is where a list begins, and which version it shows.
type Start struct {
	Revision  uint64    // 0: the newest
	After     store.Key // only keys after it
	Remaining int64     // events there, if the token says it
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
		return decodeContinue(namespace, o.Continue)
	case rv > current:
		return Start{}, &store.FutureError{Revision: rv, Current: current}
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact, o.ResourceVersionMatch == "" && o.Limit > 0:
		return Start{Revision: rv}, nil
	}
	return Start{}, nil
}

// EncodeContinue makes the token of the page after a key, where so many events remain, 0 if
// that is not known.
func EncodeContinue(namespace string, revision int64, after store.Key, remaining int64) string {
	start := after.Name + "\x00"
	if namespace == "" {
		start = after.Namespace + "/" + start
	}
	// Strings and an integer always marshal.
	b, _ := json.Marshal(continueToken{Version: tokenVersion, Revision: revision, Start: start, Remaining: remaining})
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeContinue reads a token for a list of a namespace, or of all.
func decodeContinue(namespace, text string) (Start, error) {
	bad := func(format string, args ...any) (Start, error) {
		return Start{}, apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + fmt.Sprintf(format, args...))
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return bad("%v", err)
	}
	var t continueToken
	if err := json.Unmarshal(raw, &t); err != nil {
		return bad("%v", err)
	}
	if t.Version != tokenVersion {
		return bad("server does not recognize this encoded version %q", t.Version)
	}
	if t.Revision == 0 {
		return bad("incorrect encoded start resourceVersion (version %s)", tokenVersion)
	}
	if t.Remaining < 0 {
		return bad("negative number of remaining items %d", t.Remaining)
	}
	name, ok := strings.CutSuffix(t.Start, "\x00")
	if t.Start == "" {
		return bad("encoded start key empty (version %s)", tokenVersion)
	}
	after := store.Key{Namespace: namespace, Name: name}
	if namespace == "" {
		after.Namespace, after.Name, _ = strings.Cut(name, "/")
	}
	if !ok || !segment(after.Namespace) || !segment(after.Name) {
		return bad("%q", t.Start)
	}
	return Start{uint64(max(t.Revision, 0)), after, t.Remaining, true}, nil
}

// segment reports whether text can be one segment of a key.
func segment(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.ContainsAny(text, "/\x00")
}
