package httpio

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tidings.example/eventsvc/internal/codec/request"
)

// How long a request may take, as in kube-apiserver: there is a shorter time for
// writes, and a watch that asks for no timeout gets a random one, so that not all
// watches come back at once.
const (
	MaxRequestTime = 60 * time.Second
	MaxWriteTime   = 34 * time.Second
	minWatchTime   = 30 * time.Minute
)

// QueryOf parses the query string. It is nil if there is none.
func QueryOf(r *http.Request) url.Values {
	if r.URL.RawQuery == "" {
		return nil
	}
	return r.URL.Query()
}

// NameSelected returns the name that the selectors of a list or watch select, or "". kube-apiserver takes it for the
// name of the request.
func NameSelected(q url.Values) string {
	selector, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

// Deadline returns a context that ends when the request has taken too long: after the
// timeout parameter, a Go duration, or the limit, whichever is less. A limit of 0 is none.
func Deadline(ctx context.Context, q url.Values, limit time.Duration) (context.Context, context.CancelFunc, error) {
	if text := q.Get("timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
		}
		if d > 0 && (limit == 0 || d < limit) {
			limit = d
		}
	}
	if limit == 0 {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, nil
}

// ListLimit returns how long a list or the deletion of a collection may take.
func ListLimit(o metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds == nil || *o.TimeoutSeconds <= 0 {
		return MaxRequestTime
	}
	return time.Duration(min(*o.TimeoutSeconds, int64(MaxRequestTime/time.Second))) * time.Second
}

// Invalid is the 422 for options that break the rules. Its kind is the kind of the options,
// not of an event.
func Invalid(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// ParseList reads and checks the options of list, watch and deletecollection. A parameter
// that Kubernetes does not have needs a type of our own around [metav1.ListOptions]. A watch
// that names no version gets the current state first, as in kube-apiserver.
func ParseList(q url.Values, forceWatch bool) (metav1.ListOptions, error) {
	var o metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&q, &o, nil); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	o.Watch = o.Watch || forceWatch
	if o.Watch && o.SendInitialEvents == nil && o.ResourceVersionMatch == "" &&
		(o.ResourceVersion == "" || o.ResourceVersion == "0") {
		o.SendInitialEvents, o.ResourceVersionMatch = new(true), metav1.ResourceVersionMatchNotOlderThan
	}
	return o, Invalid("ListOptions", internalvalidation.ValidateListOptions(&internalversion.ListOptions{
		Watch:                o.Watch,
		ResourceVersion:      o.ResourceVersion,
		ResourceVersionMatch: o.ResourceVersionMatch,
		Continue:             o.Continue,
		SendInitialEvents:    o.SendInitialEvents,
	}, true))
}

// WatchTime returns how long a watch may run.
func WatchTime(o metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		return time.Duration(min(*o.TimeoutSeconds, int64(365*24*time.Hour/time.Second))) * time.Second
	}
	return minWatchTime + rand.N(minWatchTime)
}

// WriteOptions are the options of create, update, patch and apply.
type WriteOptions struct {
	Manager    string // field manager, defaulted from the user agent
	Validation string // Ignore, Warn or Strict
	DryRun     bool
	Force      bool // apply only
}

// The kinds of options of writes.
const (
	CreateOptions = "CreateOptions"
	UpdateOptions = "UpdateOptions"
	PatchOptions  = "PatchOptions"
)

// PatchTypes are the media types of patches.
var PatchTypes = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType),
}

// ParseWrite returns a function that reads the options of a write. The rules of a patch
// depend on its type, which is empty for other writes. What only a patch can have is
// ignored for them.
func ParseWrite(kind string, pt types.PatchType) func(r *http.Request, q url.Values, _ []byte) (WriteOptions, error) {
	return func(r *http.Request, q url.Values, _ []byte) (WriteOptions, error) {
		var o metav1.PatchOptions // has the fields of all three kinds
		if err := metav1.Convert_url_Values_To_v1_PatchOptions(&q, &o, nil); err != nil {
			return WriteOptions{}, apierrors.NewBadRequest(err.Error())
		}
		if kind != PatchOptions {
			o.Force = nil
		}
		w := WriteOptions{
			Manager: cmp.Or(o.FieldManager, userAgentManager(r.UserAgent())), Validation: cmp.Or(o.FieldValidation, metav1.FieldValidationWarn),
			DryRun: len(o.DryRun) > 0, Force: o.Force != nil && *o.Force,
		}
		if len(q) == 0 && pt != types.ApplyYAMLPatchType { // only apply needs an option
			return w, nil
		}
		return w, Invalid(kind, validation.ValidatePatchOptions(&o, pt))
	}
}

// userAgentManager returns the field manager of a request that names none: the name of
// the program in its user agent, without characters that cannot be printed.
func userAgentManager(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	var b strings.Builder
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if b.Len()+len(string(r)) > validation.FieldManagerMaxLength {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ParseDelete returns a function that reads DeleteOptions from the query and the body. Each option counts
// wherever it is given; if both give it, the body counts, but a delete is dry if either says so.
// kube-apiserver ignores the query of a request with a body, and deletes although it says dryRun=All.
func ParseDelete(d *request.Decoder) func(req *http.Request, q url.Values, body []byte) (*metav1.DeleteOptions, error) {
	return func(req *http.Request, q url.Values, body []byte) (*metav1.DeleteOptions, error) {
		o := &metav1.DeleteOptions{}
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&q, o, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if len(body) > 0 {
			dry := o.DryRun
			o.DryRun = nil
			if err := d.DecodeDeleteOptions(req.Header.Get("Content-Type"), body, o); err != nil {
				return nil, err
			}
			o.DryRun = append(o.DryRun, dry...)
		}
		return o, Invalid("DeleteOptions", validation.ValidateDeleteOptions(o))
	}
}

// ParseVersion reads the resourceVersion of a list, get or watch. It returns 0 for "" and
// "0", which both mean that any version is good enough.
func ParseVersion(text string) (uint64, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	rv, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid resource version: " +
			field.Invalid(field.NewPath("resourceVersion"), text, err.Error()).Error())
	}
	return rv, nil
}

// FormatVersion writes a resourceVersion.
func FormatVersion(rv uint64) string { return strconv.FormatUint(rv, 10) }
