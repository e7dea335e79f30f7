package api

import (
	"fmt"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits of how long one request may take, those of the original: a
// request deadline, a shorter one for writes, and a random life for watches
// that ask for none so that they do not all come back at once.
const (
	maxRequestTime = 60 * time.Second
	maxWriteTime   = 34 * time.Second
	minWatchTime   = 30 * time.Minute
)

// query parses the query string once; a request without one costs nothing.
func query(r *http.Request) url.Values {
	if r.URL.RawQuery == "" {
		return nil
	}
	return r.URL.Query()
}

// requestTime is how long a request other than a watch may take: the timeout
// parameter, a Go duration, within the server's own limit.
func requestTime(q url.Values, limit time.Duration) (time.Duration, error) {
	text := q.Get("timeout")
	if text == "" {
		return limit, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
	}
	if d <= 0 || d > limit {
		return limit, nil
	}
	return d, nil
}

// listTime is how long a list or the deletion of a collection may take.
func listTime(q url.Values, o metav1.ListOptions) (time.Duration, error) {
	limit := maxRequestTime
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 && *o.TimeoutSeconds < int64(limit/time.Second) {
		limit = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return requestTime(q, limit)
}

// invalidOptions is the 422 for options that parse but contradict the rules;
// its kind is that of the options, not of an event.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// listOptions reads and checks the options of list, watch and
// deletecollection. A watch that names no version wants the current state
// first (the original's default for resources that serve watch lists).
func listOptions(q url.Values, forceWatch bool) (metav1.ListOptions, error) {
	var o metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&q, &o, nil); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	o.Watch = o.Watch || forceWatch
	if o.Watch && o.SendInitialEvents == nil && o.ResourceVersionMatch == "" &&
		(o.ResourceVersion == "" || o.ResourceVersion == "0") {
		yes := true
		o.SendInitialEvents, o.ResourceVersionMatch = &yes, metav1.ResourceVersionMatchNotOlderThan
	}
	return o, invalidOptions("ListOptions", internalvalidation.ValidateListOptions(&internalversion.ListOptions{
		Watch:                o.Watch,
		ResourceVersion:      o.ResourceVersion,
		ResourceVersionMatch: o.ResourceVersionMatch,
		Continue:             o.Continue,
		SendInitialEvents:    o.SendInitialEvents,
	}, true))
}

// watchTime is how long a watch may run.
func watchTime(o metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		return time.Duration(min(*o.TimeoutSeconds, int64(365*24*time.Hour/time.Second))) * time.Second
	}
	return minWatchTime + rand.N(minWatchTime)
}

// writeOptions are what create, update and patch have in common.
type writeOptions struct {
	manager    string // field manager, defaulted from the user agent
	validation string // Ignore, Warn or Strict
	dryRun     bool
	force      bool
}

// createOptions reads the options of a POST.
func createOptions(r *http.Request, q url.Values) (writeOptions, error) {
	if len(q) == 0 {
		return newWriteOptions(r, "", "", nil), nil
	}
	var o metav1.CreateOptions
	if err := metav1.Convert_url_Values_To_v1_CreateOptions(&q, &o, nil); err != nil {
		return writeOptions{}, apierrors.NewBadRequest(err.Error())
	}
	return newWriteOptions(r, o.FieldManager, o.FieldValidation, o.DryRun),
		invalidOptions("CreateOptions", validation.ValidateCreateOptions(&o))
}

// updateOptions reads the options of a PUT.
func updateOptions(r *http.Request, q url.Values) (writeOptions, error) {
	var o metav1.UpdateOptions
	if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&q, &o, nil); err != nil {
		return writeOptions{}, apierrors.NewBadRequest(err.Error())
	}
	return newWriteOptions(r, o.FieldManager, o.FieldValidation, o.DryRun),
		invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(&o))
}

// patchOptions reads the options of a PATCH, whose rules depend on its type.
func patchOptions(r *http.Request, q url.Values, pt types.PatchType) (writeOptions, error) {
	if len(q) == 0 && pt != types.ApplyYAMLPatchType { // which must have a manager
		return newWriteOptions(r, "", "", nil), nil
	}
	var o metav1.PatchOptions
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&q, &o, nil); err != nil {
		return writeOptions{}, apierrors.NewBadRequest(err.Error())
	}
	w := newWriteOptions(r, o.FieldManager, o.FieldValidation, o.DryRun)
	w.force = o.Force != nil && *o.Force
	return w, invalidOptions("PatchOptions", validation.ValidatePatchOptions(&o, pt))
}

func newWriteOptions(r *http.Request, manager, fieldValidation string, dryRun []string) writeOptions {
	if manager == "" {
		manager = userAgentManager(r.UserAgent())
	}
	if fieldValidation == "" {
		fieldValidation = metav1.FieldValidationWarn
	}
	return writeOptions{manager: manager, validation: fieldValidation, dryRun: len(dryRun) > 0}
}

// userAgentManager is the field manager of a request that names none: the
// program's name in its user agent, without what cannot be printed.
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

// deleteOptions reads DeleteOptions from the body or, if that is empty, from
// the query; the two are never merged, so a body switches the query off.
func (r *resource) deleteOptions(req *http.Request, q url.Values, body []byte) (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	if len(body) > 0 {
		var err error
		if o, err = r.codec.DecodeDeleteOptions(req.Header.Get("Content-Type"), body); err != nil {
			return nil, err
		}
	} else if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&q, o, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return o, invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(o))
}

// parseVersion reads a resourceVersion of a list, get or watch: 0 when it is
// not given or "0", which both mean that any version is good enough.
func parseVersion(text string) (uint64, error) {
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

// tooLarge is the 504 for a version that is yet to come. Clients look for the
// cause's reason and try again.
func tooLarge(asked, current uint64, retrySeconds int) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), retrySeconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

func formatVersion(rv uint64) string { return strconv.FormatUint(rv, 10) }
